//! The disk as a mounted file system: every call of whoever uses it comes here, through FUSE.
//!
//! Nothing is cached by the kernel that could hide a call: files are opened for direct I/O, so that
//! every write arrives when it is made and every sync arrives at all. The kernel holds a file's lock
//! during its sync, so that a write to the same file waits meanwhile; `device` has no such limit.

use super::disk::{Disk, Node, Refusal, State};
use super::journal::{Change, Inode};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags,
    Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Writes to this file of the root are the worker's reports and never reach the disk.
pub(super) const REPORTS: &str = ".reports";

/// The number of that file, which no file of the disk has.
const REPORTS_INODE: Inode = u64::MAX - 1;

/// What the kernel may remember: only it changes names.
const REMEMBER: Duration = Duration::from_secs(3600);

/// Calls that are served at once.
const SERVERS: usize = 4;

const BLOCK_BYTES: u64 = 4096;

/// What the source of such a mount is called, in the kernel's list of mounts.
pub(super) const SOURCE: &str = "lithify-powerloss";

/// A mounted disk; dropping it ends the mount.
pub(super) struct Mounted {
    path: PathBuf,
    session: Option<BackgroundSession>,
}

impl Mounted {
    /// Mounts a disk on an empty directory.
    pub(super) fn new(disk: &Disk, path: &Path) -> io::Result<Mounted> {
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(SOURCE.to_string()), MountOption::NoDev, MountOption::NoSuid];
        config.n_threads = Some(SERVERS);
        let session = fuser::spawn_mount(Served(disk.clone()), path, &config)?;
        Ok(Mounted { path: path.to_path_buf(), session: Some(session) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        if session.umount_and_join().is_err() {
            // Somebody still has a file open: the name goes now, the rest with the last user.
            let _ = std::process::Command::new("umount").arg("-l").arg(&self.path).output();
        }
    }
}

struct Served(Disk);

impl From<Refusal> for Errno {
    fn from(refusal: Refusal) -> Errno {
        match refusal {
            Refusal::Missing => Errno::ENOENT,
            Refusal::Exists => Errno::EEXIST,
            Refusal::NotDirectory => Errno::ENOTDIR,
            Refusal::IsDirectory => Errno::EISDIR,
            Refusal::NotEmpty => Errno::ENOTEMPTY,
            Refusal::Unsupported => Errno::EOPNOTSUPP,
        }
    }
}

fn attributes(state: &State, inode: Inode) -> Result<FileAttr, Refusal> {
    let (kind, size) = match (inode, state.nodes.get(&inode)) {
        (REPORTS_INODE, _) => (FileType::RegularFile, 0),
        (_, Some(Node::File(bytes))) => (FileType::RegularFile, bytes.len() as u64),
        (_, Some(Node::Device(device))) => (FileType::RegularFile, device.length),
        (_, Some(Node::Directory(_))) => (FileType::Directory, BLOCK_BYTES),
        (_, None) => return Err(Refusal::Missing),
    };
    Ok(FileAttr {
        ino: INodeNo(inode),
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0o777,
        nlink: state.links.get(&inode).copied().unwrap_or(1),
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: BLOCK_BYTES as u32,
        flags: 0,
    })
}

/// A name; those that are not UTF-8 are nobody's here.
fn text(name: &OsStr) -> Result<&str, Refusal> {
    name.to_str().filter(|name| !name.contains([' ', '\n'])).ok_or(Refusal::Unsupported)
}

impl Served {
    fn find(&self, parent: INodeNo, name: &OsStr) -> Result<FileAttr, Refusal> {
        let (state, name) = (self.0.state(), text(name)?);
        match (parent, name) {
            (INodeNo::ROOT, REPORTS) => attributes(&state, REPORTS_INODE),
            _ => attributes(&state, state.lookup(parent.0, name)?),
        }
    }

    fn make(&self, parent: INodeNo, name: &OsStr, is_directory: bool) -> Result<FileAttr, Refusal> {
        let inode = self.0.make(parent.0, text(name)?, is_directory)?;
        attributes(&self.0.state(), inode)
    }

    fn resize(&self, inode: INodeNo, size: Option<u64>) -> Result<FileAttr, Refusal> {
        if let Some(length) = size.filter(|_| inode.0 != REPORTS_INODE) {
            self.0.change(Change::Resize { inode: inode.0, length })?;
        }
        attributes(&self.0.state(), inode.0)
    }

    fn grow(&self, inode: INodeNo, end: u64, mode: i32) -> Result<(), Refusal> {
        const KEEP_SIZE: i32 = 1;
        let size = attributes(&self.0.state(), inode.0)?.size;
        match mode {
            KEEP_SIZE => Ok(()),
            0 if end > size => self.resize(inode, Some(end)).map(drop),
            0 => Ok(()),
            _ => Err(Refusal::Unsupported),
        }
    }

    fn write_bytes(&self, inode: INodeNo, offset: u64, data: &[u8]) -> Result<(), Refusal> {
        if inode.0 == REPORTS_INODE {
            let (words, _) = data.as_chunks::<8>();
            self.0.report(words.iter().map(|word| u64::from_le_bytes(*word)).collect());
            return Ok(());
        }
        self.0.change(Change::Write { inode: inode.0, offset, bytes: Arc::from(data) })
    }

    fn remove(&self, parent: INodeNo, name: &OsStr) -> Result<(), Refusal> {
        self.0.change(Change::Remove { parent: parent.0, name: text(name)?.to_string() })
    }

    fn rename_to(&self, from: (INodeNo, &OsStr), to: (INodeNo, &OsStr)) -> Result<(), Refusal> {
        let from = (from.0.0, text(from.1)?.to_string());
        self.0.change(Change::Rename { from, to: (to.0.0, text(to.1)?.to_string()) })
    }

    fn link_to(&self, inode: INodeNo, to: (INodeNo, &OsStr)) -> Result<FileAttr, Refusal> {
        let name = text(to.1)?.to_string();
        self.0.change(Change::Link { parent: to.0.0, name, inode: inode.0 })?;
        attributes(&self.0.state(), inode.0)
    }
}

fn answer(reply: ReplyEmpty, outcome: Result<(), Refusal>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(refusal) => reply.error(refusal.into()),
    }
}

fn answer_entry(reply: ReplyEntry, outcome: Result<FileAttr, Refusal>) {
    match outcome {
        Ok(found) => reply.entry(&REMEMBER, &found, Generation(0)),
        Err(refusal) => reply.error(refusal.into()),
    }
}

fn answer_attributes(reply: ReplyAttr, outcome: Result<FileAttr, Refusal>) {
    match outcome {
        Ok(found) => reply.attr(&REMEMBER, &found),
        Err(refusal) => reply.error(refusal.into()),
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer_entry(reply, self.find(parent, name));
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        answer_attributes(reply, attributes(&self.0.state(), inode.0));
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        _mode: Option<u32>,
        _user: Option<u32>,
        _group: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<std::time::SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<std::time::SystemTime>,
        _flags_changed: Option<std::time::SystemTime>,
        _backed_up: Option<std::time::SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        answer_attributes(reply, self.resize(inode, size));
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        answer_entry(reply, self.make(parent, name, true));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(reply, self.remove(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        match flags.is_empty() {
            true => answer(reply, self.rename_to((parent, name), (new_parent, new_name))),
            false => reply.error(Errno::EINVAL),
        }
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        answer_entry(reply, self.link_to(inode, (parent, name)));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH;
        match self.make(parent, name, false) {
            Ok(made) => reply.created(&REMEMBER, &made, Generation(0), FileHandle(0), flags),
            Err(refusal) => reply.error(refusal.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = self.0.state();
        match state.nodes.get(&inode.0) {
            Some(Node::File(bytes)) => {
                let start = bytes.len().min(offset as usize);
                reply.data(&bytes[start..bytes.len().min(start + size as usize)]);
            }
            Some(Node::Device(device)) => reply.data(&device.read(offset, size as usize)),
            Some(Node::Directory(_)) => reply.error(Errno::EISDIR),
            None => reply.data(&[]),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.write_bytes(inode, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(refusal) => reply.error(refusal.into()),
        }
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync(inode.0);
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.0.sync(inode.0);
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let state = self.0.state();
        let Some(Node::Directory(names)) = state.nodes.get(&inode.0) else {
            return reply.error(Errno::ENOTDIR);
        };
        // A name's offset is its inode's number, which stays its own while others go.
        let mut children: Vec<_> = names.iter().map(|(name, child)| (*child, name)).collect();
        children.sort();
        for (child, name) in children.into_iter().filter(|(child, _)| *child > offset) {
            let kind = match state.nodes.get(&child) {
                Some(Node::Directory(_)) => FileType::Directory,
                _ => FileType::RegularFile,
            };
            if reply.add(INodeNo(child), child, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 20;
        reply.statfs(blocks, blocks, blocks, 1 << 20, 1 << 20, 4096, 255, 4096);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        answer(reply, self.grow(inode, offset + length, mode));
    }
}
