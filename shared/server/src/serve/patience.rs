//! A writer with a time limit.
//!
//! The time starts when the client does not take all bytes at once, and ends when it has taken them all. A client that
//! takes a byte now and then gains no time, unlike with a time-out of each write. Pauses between answers do not count.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// A writer that fails with `TimedOut` when its bytes are not taken in time.
pub(crate) struct Patient<W> {
    writer: W,
    time: Duration,
    /// Runs while bytes wait to be taken.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<W: AsyncWrite + Unpin> Patient<W> {
    pub(crate) fn new(writer: W, time: Duration) -> Self {
        Self { writer, time, deadline: None }
    }

    /// Polls the writer, and the deadline while the writer is pending.
    fn poll_within<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut W>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let polled = poll(Pin::new(&mut self.writer), context);
        if polled.is_pending() {
            let time = self.time;
            ready!(self.deadline.get_or_insert_with(|| Box::pin(sleep(time))).as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        polled
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_within(context, |writer, context| writer.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_within(context, |writer, context| writer.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.writer.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.poll_within(context, W::poll_flush);
        if flushed.is_ready() {
            // hyper flushes when all bytes are written.
            self.deadline = None;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_within(context, W::poll_shutdown)
    }
}
