//! The rows, from the developer guide and the code of the containers. The parent module states what must never change.

use tuning::definition::Objective::{self, Maximize, Minimize};

use super::Emission::{AtEnd, EveryCheckpoint, EveryEpoch};
use super::Line::{After, Dictionary, Monitor, Named, Quality, QualityOfLoss, QualityOrEpoch};
use super::{Algorithm, Emission, Epochs, Line, Metric, Resource, Resume, StoppedModel, Unverified};

const fn metric(objective: Objective, name: &'static str, emission: Emission, line: Line) -> Metric {
    Metric { name, objective, emission, line }
}

const fn max(name: &'static str, emission: Emission, line: Line) -> Metric {
    metric(Maximize, name, emission, line)
}

const fn min(name: &'static str, emission: Emission, line: Line) -> Metric {
    metric(Minimize, name, emission, line)
}

const fn resource(name: &'static str, default: u32) -> Resource {
    Resource { name, default: Some(default) }
}

const fn required(name: &'static str) -> Resource {
    Resource { name, default: None }
}

/// `epoch=0`, in lines of the form `#quality_metric: ...`.
const QUALITY_EPOCH: Option<Epochs> = Some(Epochs { pattern: "epoch=([0-9]+)", base: 0, per_attempt: true });

const PLAIN: Algorithm = Algorithm {
    title: "",
    names: &[],
    metrics: &[],
    epochs: None,
    resource: None,
    resume: Resume::None,
    stopped_model: StoppedModel::Unknown,
    unverified: &[],
};

/// All rows.
#[rustfmt::skip]
pub static ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        title: "XGBoost",
        names: &["xgboost", "sagemaker-xgboost"],
        metrics: XGBOOST,
        // The pattern must not match the prefix `[HH:MM:SS] ` of a distributed job.
        epochs: Some(Epochs { pattern: r"\[([0-9]+)\](?:#011|\t)", base: 0, per_attempt: true }),
        resource: Some(required("num_round")),
        // The callback writes a file name that its loader does not search for.
        resume: Resume::Broken,
        stopped_model: StoppedModel::With("save_model_on_termination"),
        unverified: &[Unverified::Images],
    },
    Algorithm {
        title: "Image Classification (MXNet)",
        names: &["image-classification"],
        metrics: &[max("validation:accuracy", EveryEpoch, QualityOrEpoch)],
        epochs: Some(Epochs { pattern: r"(?:epoch=|Epoch\[)([0-9]+)", base: 0, per_attempt: true }),
        resource: Some(resource("epochs", 30)),
        resume: Resume::Works,
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "Object Detection (MXNet)",
        names: &["object-detection"],
        metrics: &[max("validation:mAP", EveryEpoch, Quality)],
        epochs: QUALITY_EPOCH,
        resource: Some(resource("epochs", 30)),
        resume: Resume::Works,
        ..PLAIN
    },
    Algorithm {
        title: "Semantic Segmentation",
        names: &["semantic-segmentation"],
        metrics: &[max("validation:mIOU", EveryEpoch, Quality), max("validation:pixel_accuracy", EveryEpoch, Quality)],
        epochs: QUALITY_EPOCH,
        resource: Some(resource("epochs", 10)),
        resume: Resume::Works,
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "Linear Learner",
        names: &["linear-learner"],
        metrics: LINEAR_LEARNER,
        epochs: QUALITY_EPOCH,
        resource: Some(resource("epochs", 15)),
        ..PLAIN
    },
    Algorithm {
        title: "K-Means",
        names: &["kmeans"],
        metrics: &[min("test:msd", AtEnd, Quality), min("test:ssd", AtEnd, Quality)],
        resource: Some(resource("epochs", 1)),
        ..PLAIN
    },
    Algorithm {
        title: "Factorization Machines",
        names: &["factorization-machines"],
        metrics: &[
            min("test:rmse", AtEnd, Quality),
            max("test:binary_classification_accuracy", AtEnd, Quality),
            min("test:binary_classification_cross_entropy", AtEnd, Quality),
        ],
        resource: Some(resource("epochs", 1)),
        ..PLAIN
    },
    Algorithm {
        title: "BlazingText",
        names: &["blazingtext"],
        metrics: &[
            max("train:mean_rho", AtEnd, After(r"\bmean_rho'?: ", "mean_rho: ")),
            max("validation:accuracy", EveryEpoch, After(r"(?i:validation)[ _]accuracy:? ", "validation accuracy: ")),
        ],
        resource: Some(resource("epochs", 5)),
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "DeepAR",
        names: &["forecasting-deepar"],
        metrics: &[
            min("test:RMSE", AtEnd, Quality),
            min("test:mean_wQuantileLoss", AtEnd, Quality),
            min("train:final_loss", AtEnd, Quality),
            // Logged in each epoch, although the guide does not list it as an objective.
            min("train:loss", EveryEpoch, Quality),
        ],
        epochs: QUALITY_EPOCH,
        resource: Some(required("epochs")),
        ..PLAIN
    },
    Algorithm {
        title: "Neural Topic Model",
        names: &["ntm"],
        metrics: &[min("validation:total_loss", EveryEpoch, Quality)],
        epochs: QUALITY_EPOCH,
        resource: Some(resource("epochs", 50)),
        stopped_model: StoppedModel::None,
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "Sequence-to-Sequence",
        names: &["seq2seq"],
        metrics: &[
            max("validation:accuracy", EveryCheckpoint, QualityOrEpoch),
            max("validation:bleu", EveryCheckpoint, QualityOrEpoch),
            min("validation:perplexity", EveryCheckpoint, QualityOrEpoch),
        ],
        // Values come once per checkpoint, a number that neither max_num_epochs nor max_num_batches sets.
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "IP Insights",
        names: &["ipinsights"],
        metrics: &[max("validation:discriminator_auc", EveryEpoch, Quality)],
        epochs: QUALITY_EPOCH,
        resource: Some(resource("epochs", 10)),
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "Object2Vec",
        names: &["object2vec"],
        metrics: &[
            max("validation:accuracy", EveryEpoch, Quality),
            min("validation:cross_entropy", EveryEpoch, Quality),
            min("validation:mean_squared_error", EveryEpoch, Quality),
            max("test:accuracy", EveryEpoch, Quality),
            min("test:cross_entropy", EveryEpoch, Quality),
            min("test:mean_squared_error", EveryEpoch, Quality),
        ],
        epochs: QUALITY_EPOCH,
        resource: Some(resource("epochs", 30)),
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm { title: "LDA", names: &["lda"], metrics: &[max("test:pwll", AtEnd, Quality)], ..PLAIN },
    Algorithm {
        title: "k-NN",
        names: &["knn"],
        metrics: &[max("test:accuracy", AtEnd, Quality), min("test:mse", AtEnd, Quality)],
        ..PLAIN
    },
    Algorithm { title: "Random Cut Forest", names: &["randomcutforest"], metrics: &[max("test:f1", AtEnd, Quality)], ..PLAIN },
    Algorithm {
        title: "PCA",
        names: &["pca"],
        metrics: &[max("test:throughput", AtEnd, Quality)],
        unverified: &[Unverified::Line],
        ..PLAIN
    },
    Algorithm {
        title: "LightGBM",
        names: &["lightgbm"],
        metrics: LIGHTGBM,
        epochs: Some(Epochs { pattern: r"\[([0-9]+)\]", base: 1, per_attempt: true }),
        resource: Some(resource("num_boost_round", 100)),
        unverified: &[Unverified::Names, Unverified::Base],
        ..PLAIN
    },
    Algorithm {
        title: "CatBoost",
        names: &["catboost"],
        metrics: CATBOOST,
        resource: Some(resource("iterations", 500)),
        unverified: &[Unverified::Names],
        ..PLAIN
    },
    Algorithm {
        title: "TabTransformer",
        names: &["tabtransformer"],
        metrics: &[
            max("r2", EveryEpoch, Dictionary),
            min("mse", EveryEpoch, Dictionary),
            max("f1_score", EveryEpoch, Dictionary),
            max("accuracy_score", EveryEpoch, Dictionary),
            min("log_loss", EveryEpoch, Dictionary),
            max("auc", EveryEpoch, Dictionary),
        ],
        resource: Some(resource("n_epochs", 5)),
        unverified: &[Unverified::Names],
        ..PLAIN
    },
    Algorithm { title: "AutoGluon-Tabular", names: &["autogluon"], unverified: &[Unverified::Names], ..PLAIN },
    Algorithm {
        title: "Image Classification (TensorFlow)",
        names: &["image-classification-tensorflow"],
        metrics: &[max("validation:accuracy", EveryEpoch, After("val_accuracy=", "val_accuracy="))],
        resource: Some(required("epochs")),
        unverified: &[Unverified::Names],
        ..PLAIN
    },
    Algorithm {
        title: "Text Classification (TensorFlow)",
        names: &["text-classification-tensorflow"],
        metrics: &[max("validation:accuracy", EveryEpoch, After("val_accuracy=", "val_accuracy="))],
        resource: Some(required("epochs")),
        unverified: &[Unverified::Names],
        ..PLAIN
    },
    Algorithm {
        title: "Object Detection (TensorFlow)",
        names: &["object-detection-tensorflow"],
        metrics: &[min("validation:localization_loss", EveryEpoch, After("Val_localization=", "Val_localization="))],
        resource: Some(required("epochs")),
        unverified: &[Unverified::Names],
        ..PLAIN
    },
];

#[rustfmt::skip]
const XGBOOST: &[Metric] = &[
    max("validation:accuracy", EveryEpoch, Monitor),
    max("validation:auc", EveryEpoch, Monitor),
    max("validation:aucpr", EveryEpoch, Monitor),
    max("validation:balanced_accuracy", EveryEpoch, Monitor),
    max("validation:f1", EveryEpoch, Monitor),
    max("validation:f1_binary", EveryEpoch, Monitor),
    max("validation:f1_macro", EveryEpoch, Monitor),
    max("validation:map", EveryEpoch, Monitor),
    max("validation:ndcg", EveryEpoch, Monitor),
    max("validation:precision", EveryEpoch, Monitor),
    max("validation:precision_macro", EveryEpoch, Monitor),
    max("validation:precision_micro", EveryEpoch, Monitor),
    max("validation:r2", EveryEpoch, Monitor),
    max("validation:recall", EveryEpoch, Monitor),
    max("validation:recall_macro", EveryEpoch, Monitor),
    max("validation:recall_micro", EveryEpoch, Monitor),
    min("validation:aft-nloglik", EveryEpoch, Monitor),
    min("validation:cox-nloglik", EveryEpoch, Monitor),
    min("validation:error", EveryEpoch, Monitor),
    min("validation:gamma-deviance", EveryEpoch, Monitor),
    min("validation:gamma-nloglik", EveryEpoch, Monitor),
    // An accuracy by name, but the container's own table minimizes it.
    min("validation:interval-regression-accuracy", EveryEpoch, Monitor),
    min("validation:logloss", EveryEpoch, Monitor),
    min("validation:mae", EveryEpoch, Monitor),
    min("validation:mape", EveryEpoch, Monitor),
    min("validation:merror", EveryEpoch, Monitor),
    min("validation:mlogloss", EveryEpoch, Monitor),
    min("validation:mphe", EveryEpoch, Monitor),
    min("validation:mse", EveryEpoch, Monitor),
    min("validation:poisson-nloglik", EveryEpoch, Monitor),
    min("validation:rmse", EveryEpoch, Monitor),
    min("validation:rmsle", EveryEpoch, Monitor),
    min("validation:tweedie-nloglik", EveryEpoch, Monitor),
];

#[rustfmt::skip]
const LINEAR_LEARNER: &[Metric] = &[
    min("validation:objective_loss", EveryEpoch, QualityOfLoss),
    min("validation:absolute_loss", AtEnd, Quality),
    max("validation:binary_classification_accuracy", AtEnd, Quality),
    max("validation:binary_f_beta", AtEnd, Quality),
    max("validation:macro_f_beta", AtEnd, Quality),
    min("validation:mse", AtEnd, Quality),
    max("validation:multiclass_accuracy", AtEnd, Quality),
    max("validation:precision", AtEnd, Quality),
    max("validation:r2", AtEnd, Quality),
    max("validation:recall", AtEnd, Quality),
    min("validation:rmse", AtEnd, Quality),
    max("validation:roc_auc_score", AtEnd, Quality),
    min("test:absolute_loss", AtEnd, Quality),
    max("test:binary_classification_accuracy", AtEnd, Quality),
    max("test:binary_f_beta", AtEnd, Quality),
    max("test:macro_f_beta", AtEnd, Quality),
    min("test:mse", AtEnd, Quality),
    max("test:multiclass_accuracy", AtEnd, Quality),
    max("test:precision", AtEnd, Quality),
    max("test:r2", AtEnd, Quality),
    max("test:recall", AtEnd, Quality),
    min("test:rmse", AtEnd, Quality),
    max("test:roc_auc_score", AtEnd, Quality),
];

/// The directions follow the meaning of the metrics, because the guide reverses some of them.
#[rustfmt::skip]
const LIGHTGBM: &[Metric] = &[
    max("auc", EveryEpoch, Named),
    max("auc_mu", EveryEpoch, Named),
    max("average_precision", EveryEpoch, Named),
    min("rmse", EveryEpoch, Named),
    min("l1", EveryEpoch, Named),
    min("l2", EveryEpoch, Named),
    min("huber", EveryEpoch, Named),
    min("fair", EveryEpoch, Named),
    min("binary_logloss", EveryEpoch, Named),
    min("binary_error", EveryEpoch, Named),
    min("multi_logloss", EveryEpoch, Named),
    min("multi_error", EveryEpoch, Named),
    min("cross_entropy", EveryEpoch, Named),
];

/// `CatBoost` prints this line for the configured metric.
const BEST_TEST: Line = After("bestTest = ", "bestTest = ");

#[rustfmt::skip]
const CATBOOST: &[Metric] = &[
    max("AUC", AtEnd, BEST_TEST),
    max("Accuracy", AtEnd, BEST_TEST),
    max("F1", AtEnd, BEST_TEST),
    max("R2", AtEnd, BEST_TEST),
    min("RMSE", AtEnd, BEST_TEST),
    min("MAE", AtEnd, BEST_TEST),
    min("Logloss", AtEnd, BEST_TEST),
    min("MultiClass", AtEnd, BEST_TEST),
];
