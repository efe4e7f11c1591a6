//! The writer's socket, which is not watched while nobody waits for what comes on it.
//!
//! ```text
//! client library --read, write--> GatedStream ~~ socket
//!        ^ wakers                      |
//!        +-- watcher, while open ---- dup
//! ```
//!
//! A reactor watches every socket all the time.
//! Then each answer of the broker wakes the reactor's thread, which wakes the client library's, which
//! reads it: two wake-ups for news that nobody waits for.
//! While this gate is shut, the socket is read when the next message was written to it: the client
//! library's thread is awake then anyway.

use std::fmt;
use std::future::pending;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_core::Stream;
use futures_io::{AsyncRead, AsyncWrite};
use tokio::io::Interest;
use tokio::sync::Notify;

/// Whether a connection's socket is watched; open at first.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Shared>);

#[derive(Default)]
struct Shared {
    is_shut: AtomicBool,
    /// That of the connection; the one before ended with it.
    socket: Mutex<Option<Arc<Socket>>>,
}

/// A socket, and who waits for it.
struct Socket {
    stream: TcpStream,
    reader: Mutex<Option<Waker>>,
    writer: Mutex<Option<Waker>>,
    /// Wakes the watcher: there is something else to watch, or nothing.
    changed: Notify,
    is_gone: AtomicBool,
}

/// Watching failed: the wakers are woken so often.
const BLIND_LOOK: Duration = Duration::from_millis(10);

impl Gate {
    /// The current runtime, but for its sockets.
    pub(crate) fn runtime(&self) -> Runtime<RuntimeParts<Tokio, GatedReactor>> {
        let reactor = GatedReactor {
            tokio: Tokio::current(),
            gate: self.clone(),
        };
        Runtime::new(RuntimeParts::new(Tokio::current(), reactor))
    }

    /// Says whether the socket is watched from now on. What came before it was is found then.
    pub(crate) fn set_shut(&self, is_shut: bool) {
        if self.0.is_shut.swap(is_shut, Ordering::SeqCst) != is_shut
            && let Some(socket) = &*self.socket()
        {
            socket.changed.notify_one();
        }
    }

    fn socket(&self) -> MutexGuard<'_, Option<Arc<Socket>>> {
        lock(&self.0.socket)
    }

    fn is_shut(&self) -> bool {
        self.0.is_shut.load(Ordering::SeqCst)
    }

    /// Watches a socket from now on, on the current runtime.
    fn attach(&self, stream: TcpStream) -> GatedStream {
        let socket = Arc::new(Socket {
            stream,
            reader: Mutex::default(),
            writer: Mutex::default(),
            changed: Notify::new(),
            is_gone: AtomicBool::new(false),
        });
        *self.socket() = Some(Arc::clone(&socket));
        let watched = Watched(Arc::clone(&socket));
        drop(tokio::spawn(watch(self.clone(), watched)));
        GatedStream {
            socket,
            gate: self.clone(),
        }
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("is_shut", &self.is_shut())
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waker: &Mutex<Option<Waker>>) {
    let waker = lock(waker).take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Wakes who waits for a socket, until that is gone.
async fn watch(gate: Gate, watched_socket: Watched) {
    let socket = &watched_socket.0;
    let mut reading = None;
    let mut writing = None;
    while !socket.is_gone.load(Ordering::SeqCst) {
        let reads = !gate.is_shut();
        let writes = lock(&socket.writer).is_some();
        // Registered anew it tells what came meanwhile.
        let watched = watched(&mut reading, reads, &socket.stream)
            .and_then(|()| watched(&mut writing, writes, &socket.stream));
        if watched.is_err() {
            tokio::time::sleep(BLIND_LOOK).await;
            wake(&socket.reader);
            wake(&socket.writer);
            continue;
        }
        tokio::select! {
            () = socket.changed.notified() => {}
            ended = ready(reading.as_ref(), Interest::READABLE) => {
                wake(&socket.reader);
                if ended {
                    // It stays ready until whoever reads has seen it.
                    tokio::time::sleep(BLIND_LOOK).await;
                }
            }
            _ = ready(writing.as_ref(), Interest::WRITABLE) => wake(&socket.writer),
        }
    }
}

/// Nobody waits for a socket that is no longer watched: its runtime may have ended.
struct Watched(Arc<Socket>);

impl Drop for Watched {
    fn drop(&mut self) {
        let socket = &self.0;
        socket.end();
        wake(&socket.reader);
        wake(&socket.writer);
    }
}

impl Socket {
    /// Ends the connection, whoever has a duplicate of it.
    fn end(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        // It may have ended already.
        self.stream.shutdown(Shutdown::Both).ok();
        self.changed.notify_one();
    }

    /// Tries something that does not block; who waits for it is noted before, so that no wake-up is
    /// lost.
    fn attempt(
        &self,
        waiting: &Mutex<Option<Waker>>,
        cx: &Context<'_>,
        mut action: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        *lock(waiting) = Some(cx.waker().clone());
        loop {
            if self.is_gone.load(Ordering::SeqCst) {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            match action(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => {
                    *lock(waiting) = None;
                    return Poll::Ready(done);
                }
            }
        }
    }
}

/// Registers a socket, or no longer.
fn watched(
    registered: &mut Option<tokio::net::TcpStream>,
    is_wanted: bool,
    stream: &TcpStream,
) -> io::Result<()> {
    if is_wanted != registered.is_some() {
        *registered = None;
        if is_wanted {
            *registered = Some(tokio::net::TcpStream::from_std(stream.try_clone()?)?);
        }
    }
    Ok(())
}

/// Waits until a registered socket is ready, and forgets that it is: who is woken for it uses it up.
/// Yields whether nothing more will come.
async fn ready(registered: Option<&tokio::net::TcpStream>, interest: Interest) -> bool {
    let Some(stream) = registered else {
        return pending().await;
    };
    // What is wrong with a socket shows when it is used.
    let ready = stream.ready(interest).await;
    let used_up = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
    stream.try_io(interest, used_up).ok();
    ready.map_or(true, |ready| ready.is_read_closed() || ready.is_error())
}

/// A socket that is not watched while its gate is shut.
pub(crate) struct GatedStream {
    socket: Arc<Socket>,
    gate: Gate,
}

impl AsyncRead for GatedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let socket = &self.socket;
        socket.attempt(&socket.reader, cx, |mut stream| stream.read(buffer))
    }
}

impl AsyncWrite for GatedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let socket = &self.socket;
        #[expect(
            clippy::disallowed_methods,
            reason = "who polls is told how much was written"
        )]
        let polled = socket.attempt(&socket.writer, cx, |mut stream| stream.write(bytes));
        if polled.is_pending() {
            socket.changed.notify_one();
        } else if self.gate.is_shut() {
            // This thread reads next, without having slept.
            wake(&socket.reader);
        }
        polled
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.socket.stream.shutdown(Shutdown::Write))
    }
}

impl Drop for GatedStream {
    fn drop(&mut self) {
        self.socket.end();
    }
}

/// Tokio's, but for the sockets that it connects.
#[derive(Debug, Clone)]
pub(crate) struct GatedReactor {
    tokio: Tokio,
    gate: Gate,
}

impl Reactor for GatedReactor {
    type TcpStream = GatedStream;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.tokio.register(socket)
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.tokio.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.tokio.interval(time)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let gate = self.gate.clone();
        async move {
            let stream = tokio::net::TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(gate.attach(stream.into_std()?))
        }
    }
}

#[cfg(test)]
mod tests;
