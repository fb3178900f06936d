//! A writer with a time limit.
//!
//! The time starts when the client does not accept all bytes at once, and ends when it has accepted them all. A client
//! that accepts single bytes gains hardly any time, unlike with a time-out for each write. Each 64 KiB extend the limit
//! by a second, so that a slow connection can receive a large page. Pauses between responses do not count.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::time::{Sleep, sleep};

/// The slowest connection that gets a page of any size.
const BYTES_A_SECOND: u32 = 64 * 1024;

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

    /// Gives time for the bytes that the client took.
    fn extend(&mut self, written: &Poll<io::Result<usize>>) {
        if let (Some(deadline), Poll::Ready(Ok(bytes))) = (&mut self.deadline, written) {
            let bytes = u32::try_from(*bytes).unwrap_or(u32::MAX);
            let later = deadline.deadline() + Duration::from_secs(1).saturating_mul(bytes) / BYTES_A_SECOND;
            deadline.as_mut().reset(later);
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Patient<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.poll_within(context, |writer, context| writer.poll_write(context, bytes));
        self.extend(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.poll_within(context, |writer, context| writer.poll_write_vectored(context, parts));
        self.extend(&written);
        written
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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes nothing at first, and then everything.
    struct Late {
        asked: bool,
    }

    impl AsyncWrite for Late {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if std::mem::replace(&mut self.asked, true) {
                Poll::Ready(Ok(bytes.len()))
            } else {
                Poll::Pending
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn taken_bytes_gain_time_until_all_are_taken() {
        let mut writer = Patient::new(Late { asked: false }, Duration::from_secs(30));
        let mut context = Context::from_waker(Waker::noop());
        let bytes = vec![0; 2 * 64 * 1024];
        assert!(Pin::new(&mut writer).poll_write(&mut context, &bytes).is_pending());
        let first = writer.deadline.as_ref().unwrap().deadline();
        assert!(Pin::new(&mut writer).poll_write(&mut context, &bytes).is_ready());
        let gained = writer.deadline.as_ref().unwrap().deadline() - first;
        assert_eq!(gained, Duration::from_secs(2));
        assert!(Pin::new(&mut writer).poll_flush(&mut context).is_ready());
        assert!(writer.deadline.is_none());
    }
}
