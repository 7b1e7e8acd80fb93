import { expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeFileSystemRisk, findFileSystemRisk, findTypeRisk } from '../../src/storage/engines/sqlite/file-system'

// As `stat --file-system` prints them, on machines of 64 bits.
const UNSAFE = { nfs: 0x6969n, cifs: 0xff534d42n, smb2: 0xfe534d42n, smb: 0x517bn, '9p': 0x1021997n, afs: 0x5346414fn }
const UNCERTAIN = { fuse: 0x65735546n, ceph: 0xc36400n, lustre: 0xbd00bd0n }
const LOCAL = {
  ...{ ext4: 0xef53n, xfs: 0x58465342n, btrfs: 0x9123683en, tmpfs: 0x1021994n, zfs: 0x2fc12fc1n, overlay: 0x794c7630n },
  ...{ f2fs: 0xf2f52010n, ntfs3: 0x7366746en, bcachefs: 0xca451a4en },
}

test('network file systems are unsafe, FUSE and cluster file systems are uncertain, and local ones have no risk', () => {
  for (const [name, type] of Object.entries(UNSAFE)) expect([name, findTypeRisk(type)?.isUnsafe]).toEqual([name, true])
  for (const [name, type] of Object.entries(UNCERTAIN))
    expect([name, findTypeRisk(type)?.isUnsafe]).toEqual([name, false])
  for (const [name, type] of Object.entries(LOCAL)) expect([name, findTypeRisk(type)]).toEqual([name, undefined])
})

test('a type whose word of 32 bits was sign-extended is recognized', () => {
  expect(findTypeRisk(BigInt.asIntN(32, 0xff534d42n))).toEqual({ name: 'CIFS', isUnsafe: true })
})

test('a local folder has no risk, whether it exists or not, and the sentence about others says what to do', () => {
  expect(findFileSystemRisk(tmpdir())).toBeUndefined()
  expect(findFileSystemRisk(join(tmpdir(), 'missing', 'folder'))).toBeUndefined()
  const unsafe = describeFileSystemRisk('/data', { name: 'NFS', isUnsafe: true })
  expect(unsafe).toContain('The folder "/data" is on NFS, where SQLite databases can be damaged. Set ATOLL_TENANTS')
  const uncertain = describeFileSystemRisk('/data', { name: 'FUSE', isUnsafe: false })
  expect(uncertain).toContain('on FUSE. If it leads to another machine')
})
