//! Packets of the client/server protocol over a local socket, and the fields in them.
//!
//! Owns: framing (a length of three bytes and a sequence number before each payload; a payload of
//! 16 MiB goes in several), and the integers and strings of the protocol. Received packets are lent
//! out of one buffer. Does not: know what packets mean.
//!
//! Bytes go through `send` and `recv`: what a process writes to a socket with `write` would count
//! among the bytes that it writes to files.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};

/// Most payload of one frame; a longer payload goes on in the next.
const FRAME_BYTES_MAX: usize = 0xFF_FFFF;

/// Length and sequence number.
const HEADER_BYTES: usize = 4;

/// Bytes asked for at once.
const READ_BYTES: usize = 64 << 10;

/// Packets in both directions.
#[derive(Debug)]
pub struct Wire {
    stream: UnixStream,
    sequence: u8,
    received: Vec<u8>,
    /// Bytes of `received` that are not lent out yet.
    pending: std::ops::Range<usize>,
    /// A payload of several frames.
    joined: Vec<u8>,
    frames: Vec<u8>,
}

impl Wire {
    /// Packets over `stream`.
    pub fn new(stream: UnixStream) -> Wire {
        Wire {
            stream,
            sequence: 0,
            received: Vec::new(),
            pending: 0..0,
            joined: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Sends the first packet of a new exchange.
    pub fn send_first(&mut self, payload: &[&[u8]]) -> io::Result<()> {
        self.sequence = 0;
        self.send(payload)
    }

    /// Sends a packet whose payload is given in parts.
    pub fn send(&mut self, payload: &[&[u8]]) -> io::Result<()> {
        self.frames.clear();
        let mut header = self.open_frame();
        for part in payload {
            let mut part = *part;
            loop {
                let room = FRAME_BYTES_MAX - (self.frames.len() - header - HEADER_BYTES);
                let (now, later) = part.split_at(room.min(part.len()));
                self.frames.extend_from_slice(now);
                part = later;
                if now.len() < room {
                    break;
                }
                self.close_frame(header);
                header = self.open_frame();
            }
        }
        self.close_frame(header);
        let mut rest = self.frames.as_slice();
        while !rest.is_empty() {
            match send(self.stream.as_raw_fd(), rest, MsgFlags::MSG_NOSIGNAL) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn open_frame(&mut self) -> usize {
        let header = self.frames.len();
        self.frames.extend_from_slice(&[0; HEADER_BYTES]);
        header
    }

    fn close_frame(&mut self, header: usize) {
        let length = (self.frames.len() - header - HEADER_BYTES) as u32;
        self.frames[header..header + 3].copy_from_slice(&length.to_le_bytes()[..3]);
        self.frames[header + 3] = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The next packet's payload.
    pub fn receive(&mut self) -> io::Result<&[u8]> {
        let mut frame = self.frame()?;
        if frame.len() < FRAME_BYTES_MAX {
            return Ok(&self.received[frame]);
        }
        self.joined.clear();
        loop {
            self.joined.extend_from_slice(&self.received[frame.clone()]);
            if frame.len() < FRAME_BYTES_MAX {
                return Ok(&self.joined);
            }
            frame = self.frame()?;
        }
    }

    /// The place of the next frame's payload.
    fn frame(&mut self) -> io::Result<std::ops::Range<usize>> {
        self.fill(HEADER_BYTES)?;
        let header = &self.received[self.pending.start..];
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        self.sequence = header[3].wrapping_add(1);
        self.fill(HEADER_BYTES + length)?;
        let start = self.pending.start + HEADER_BYTES;
        self.pending.start = start + length;
        Ok(start..start + length)
    }

    /// Receives until `wanted` bytes are pending.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        if self.pending.len() >= wanted {
            return Ok(());
        }
        self.received.copy_within(self.pending.clone(), 0);
        self.pending = 0..self.pending.len();
        if self.received.len() < wanted.max(READ_BYTES) {
            self.received.resize(wanted.max(READ_BYTES), 0);
        }
        while self.pending.len() < wanted {
            match self.stream.read(&mut self.received[self.pending.end..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.pending.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Takes fields off the front of a payload; `None` where it is too short.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(head)
    }

    /// A little-endian integer of `count` bytes, at most 8.
    pub fn integer(&mut self, count: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes.get_mut(..count)?.copy_from_slice(self.take(count)?);
        Some(u64::from_le_bytes(bytes))
    }

    /// An integer that tells its own length.
    pub fn length(&mut self) -> Option<u64> {
        match self.integer(1)? {
            0xFC => self.integer(2),
            0xFD => self.integer(3),
            0xFE => self.integer(8),
            // A missing value and an error; neither is a number.
            0xFB | 0xFF => None,
            small => Some(small),
        }
    }

    /// Bytes behind their length.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(usize::try_from(length).ok()?)
    }
}

/// Appends an integer that tells its own length.
pub fn put_length(out: &mut Vec<u8>, length: usize) {
    let bytes = (length as u64).to_le_bytes();
    match length {
        0..=0xFA => out.push(bytes[0]),
        0xFB..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_and_short_fields_are_none() {
        for length in [0, 250, 251, 0xFFFF, 0x1_0000, 0xFF_FFFF, 0x100_0000] {
            let mut bytes = Vec::new();
            put_length(&mut bytes, length);
            let mut fields = Fields(&bytes);
            assert_eq!((fields.length(), fields.0.len()), (Some(length as u64), 0));
            assert_eq!(Fields(&bytes[..bytes.len() - 1]).length(), None);
        }
        assert_eq!(Fields(b"\x05abc").bytes(), None);
        assert_eq!(Fields(&[0xFB]).length(), None);
        let mut fields = Fields(b"abc");
        assert_eq!(
            (fields.take(2), fields.take(2), fields.integer(1)),
            (Some(&b"ab"[..]), None, Some(99))
        );
    }

    #[test]
    fn packets_of_all_sizes_pass() {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        let sizes = [0, 1, 100_000, FRAME_BYTES_MAX - 1, FRAME_BYTES_MAX, FRAME_BYTES_MAX + 5];
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut wire = Wire::new(far);
                for size in sizes {
                    let payload = vec![7; size];
                    let (head, tail) = payload.split_at(size / 3);
                    wire.send(&[head, tail]).expect("sends");
                }
            });
            let mut wire = Wire::new(near);
            for size in sizes {
                let payload = wire.receive().expect("receives");
                assert!(payload.len() == size && payload.iter().all(|byte| *byte == 7), "{size}");
            }
            assert!(wire.receive().is_err(), "the other end is closed");
        });
    }
}
