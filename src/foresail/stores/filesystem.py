"""Which kind of file system a log lies on.

SQLite's write-ahead log needs memory that all its processes share, which network file systems do not give
(https://www.sqlite.org/wal.html, "Overview", disadvantage 2).
"""

from __future__ import annotations

from pathlib import Path

_NAMES = """
9p afs afpfs beegfs ceph cifs coda davfs fhgfs glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs pvfs2 smb2
smb3 smbfs vboxsf webdav wekafs fuse.ceph fuse.cephfs fuse.davfs2 fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.juicefs
fuse.rclone fuse.s3fs fuse.sshfs
"""
NETWORK = frozenset(_NAMES.split())


def network_kind(path: Path) -> str:
    """The kind of the network file system that `path` lies on; empty for a local or unknown one."""
    import psutil

    target = path.resolve()
    best, kind = -1, ""
    for mount in psutil.disk_partitions(all=True):
        point = Path(mount.mountpoint)
        if target.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), mount.fstype
    return kind if kind in NETWORK else ""
