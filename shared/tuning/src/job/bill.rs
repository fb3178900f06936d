//! The money of a training job: its reservation until it is billed, then its bill, which the service may raise.

use serde::{Deserialize, Serialize};

use crate::job::inquiry::Inquiry;
use crate::unit::money::MicroUsd;
use crate::unit::time::Time;

/// The reservation of a job, and its bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// Its worst case, reserved until it is billed.
    pub reservation: MicroUsd,
    /// What it reserved more because it lasts longer than that.
    #[serde(default, skip_serializing_if = "crate::unit::is_default")]
    pub extension: Extension,
    /// Whether it is booked.
    pub stage: Stage,
    /// Billed seconds that the service showed after the first bill, or after the conclusion of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<u64>,
    /// Billed seconds that the service showed once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<u64>,
}

/// Whether a bill is booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// The reservation is reserved. Once the job has ended, its bill is read.
    Open(Inquiry),
    /// The bill is booked.
    Booked {
        /// Billed seconds.
        seconds: u64,
        /// The amount.
        amount: MicroUsd,
        /// When its read was ordered; `None` if it came without an order.
        read_at: Option<Time>,
    },
    /// The bill never came: the whole reservation is booked.
    InFull(MicroUsd),
}

/// What a job past its first reservation reserved more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Extension {
    /// The seconds that it pays for.
    pub seconds: u64,
    /// The part of the reservation.
    pub amount: MicroUsd,
}

impl Bill {
    pub(crate) fn reserved(reservation: MicroUsd) -> Self {
        Self {
            reservation,
            extension: Extension::default(),
            stage: Stage::Open(Inquiry::Idle),
            shown: None,
            confirmed: None,
        }
    }

    /// Returns the booked amount.
    pub fn amount(&self) -> Option<MicroUsd> {
        match self.stage {
            Stage::Open(_) => None,
            Stage::Booked { amount, .. } | Stage::InFull(amount) => Some(amount),
        }
    }

    /// Returns the booked seconds; `None` also when the whole reservation is booked.
    pub fn seconds(&self) -> Option<u64> {
        match self.stage {
            Stage::Booked { seconds, .. } => Some(seconds),
            Stage::Open(_) | Stage::InFull(_) => None,
        }
    }

    pub(crate) fn book(&mut self, seconds: u64, amount: MicroUsd) {
        self.stage = Stage::Booked { seconds, amount, read_at: self.read_at() };
    }

    /// Returns when the read of the bill was ordered.
    pub fn read_at(&self) -> Option<Time> {
        match self.stage {
            Stage::Open(inquiry) => inquiry.ordered_at(),
            Stage::Booked { read_at, .. } => read_at,
            Stage::InFull(_) => None,
        }
    }

    /// Returns the read of the bill; `None` once an amount is booked.
    pub(crate) fn inquiry(&self) -> Option<Inquiry> {
        match self.stage {
            Stage::Open(inquiry) => Some(inquiry),
            Stage::Booked { .. } | Stage::InFull(_) => None,
        }
    }

    /// As [`Bill::inquiry`], to change it.
    pub(crate) fn inquiry_mut(&mut self) -> Option<&mut Inquiry> {
        match &mut self.stage {
            Stage::Open(inquiry) => Some(inquiry),
            Stage::Booked { .. } | Stage::InFull(_) => None,
        }
    }

    /// Returns whether the whole reservation is booked.
    pub fn is_in_full(&self) -> bool {
        matches!(self.stage, Stage::InFull(_))
    }

    /// Returns whether no other bill will be booked: it was read once more, or it never came.
    pub(crate) fn is_final(&self) -> bool {
        match self.stage {
            Stage::Open(_) => false,
            Stage::InFull(_) => true,
            Stage::Booked { seconds, .. } => {
                crate::planted!(FirstBillFinal)
                    || (self.confirmed == Some(seconds) && self.shown.is_none_or(|shown| seconds >= shown))
            }
        }
    }

    /// Returns the billed seconds that the service showed for a concluded job and that are not booked.
    pub fn unbooked_seconds(&self) -> Option<u64> {
        self.shown.filter(|_| self.shown > self.seconds())
    }
}
