import { existsSync, statfsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** What is known about a file system on which databases are to be stored: `unsafe` ones may damage them. */
export type FileSystemRisk = { name: string; isUnsafe: boolean }

// From statfs(2) and linux/magic.h. SQLite's log needs memory that is shared with all users of the file, and locks that
// work; over a network there is no such memory, and two machines would write into one database.
const UNSAFE_TYPES = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x01021997, '9p'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x73757245, 'Coda'],
  [0x786f4256, 'a shared folder of VirtualBox'],
  [0xbacbacbc, 'a shared folder of VMware'],
])
// Some of these are local disks, others lead to another machine, and some of those work.
const UNCERTAIN_TYPES = new Map([
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
])

/** Returns the risk of a type that statfs(2) of Linux tells, or undefined for local file systems. */
export function findTypeRisk(type: bigint): FileSystemRisk | undefined {
  // Types are words of 32 bits, which may be sign-extended.
  const word = Number(BigInt.asUintN(32, type))
  const name = UNSAFE_TYPES.get(word) ?? UNCERTAIN_TYPES.get(word)
  return name === undefined ? undefined : { name, isUnsafe: UNSAFE_TYPES.has(word) }
}

/** Returns the risk of the file system of a folder, or of where it would be created. Only Linux tells it. */
export function findFileSystemRisk(folder: string): FileSystemRisk | undefined {
  if (process.platform !== 'linux') return
  let nearest = resolve(folder)
  while (!existsSync(nearest)) nearest = dirname(nearest)
  return findTypeRisk(statfsSync(nearest, { bigint: true }).type)
}

/** Returns what is wrong with a file system of this risk, and what to do. */
export const describeFileSystemRisk = (folder: string, { name, isUnsafe }: FileSystemRisk) =>
  isUnsafe
    ? `The folder "${folder}" is on ${name}, where SQLite databases can be damaged. Set ATOLL_TENANTS to a folder on a local disk, or use PostgreSQL (ATOLL_DATABASE_URL).`
    : `The folder "${folder}" is on ${name}. If it leads to another machine, SQLite databases can be damaged there: set ATOLL_TENANTS to a folder on a local disk.`
