// engine: sqlite
import { expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inflateRawSync } from 'node:zlib'
import { createTarGz, createZip, type Entry } from '../../.release/archives'
import { createTempFolder } from '../fakes/cli'

const TIME = 1_790_000_000
const entries: Entry[] = [
  { path: 'atoll-1.0.0/atoll', content: crypto.getRandomValues(new Uint8Array(60_000)), isExecutable: true },
  { path: 'atoll-1.0.0/LICENSE', content: Buffer.from('MIT\n'.repeat(100)) },
  { path: 'atoll-1.0.0/empty', content: new Uint8Array() },
  { path: 'atoll-1.0.0/block', content: Buffer.alloc(512, 1) },
]

test('tar unpacks a .tar.gz with its contents, modes and times', () => {
  const folder = createTempFolder('tar')
  const archive = join(folder, 'a.tar.gz')
  writeFileSync(archive, createTarGz(entries, TIME))
  const { success, stderr } = Bun.spawnSync(['tar', '-xzpf', archive, '-C', folder])
  expect([success, `${stderr}`]).toEqual([true, ''])
  for (const { path, content, isExecutable } of entries) {
    const file = join(folder, path)
    expect(readFileSync(file).equals(Buffer.from(content))).toBe(true)
    expect([statSync(file).mode & 0o777, statSync(file).mtimeMs]).toEqual([isExecutable ? 0o755 : 0o644, TIME * 1_000])
  }
})

/** Reads a zip by its directory, as its users do. */
function readZip(zip: Buffer) {
  const end = zip.length - 22
  expect(zip.readUInt32LE(end)).toBe(0x06054b50)
  let at = zip.readUInt32LE(end + 16)
  return Array.from({ length: zip.readUInt16LE(end + 10) }, () => {
    expect(zip.readUInt32LE(at)).toBe(0x02014b50)
    const [crc, packed, nameLength] = [zip.readUInt32LE(at + 16), zip.readUInt32LE(at + 20), zip.readUInt16LE(at + 28)]
    const [attributes, local] = [zip.readUInt32LE(at + 38), zip.readUInt32LE(at + 42)]
    const path = zip.toString('utf8', at + 46, at + 46 + nameLength)
    expect(zip.readUInt32LE(local)).toBe(0x04034b50)
    const data = local + 30 + zip.readUInt16LE(local + 26)
    const content = inflateRawSync(zip.subarray(data, data + packed))
    expect(Bun.hash.crc32(content)).toBe(crc)
    expect(content.length).toBe(zip.readUInt32LE(at + 24))
    at += 46 + nameLength
    return { path, content, mode: (attributes >>> 16) & 0o777 }
  })
}

test('a .zip has the contents and modes of its files', () => {
  const files = readZip(Buffer.from(createZip(entries, TIME)))
  expect(files.map(({ path }) => path)).toEqual(entries.map(({ path }) => path))
  for (const [index, { content, mode }] of files.entries()) {
    expect(content.equals(Buffer.from(entries[index]!.content))).toBe(true)
    expect(mode).toBe(entries[index]!.isExecutable ? 0o755 : 0o644)
  }
})

test('the same files and time give the same archive, and another time gives another', () => {
  for (const create of [createTarGz, createZip]) {
    const hash = (time: number) => Bun.hash(create(entries, time))
    expect(hash(TIME)).toBe(hash(TIME))
    expect(hash(TIME)).not.toBe(hash(TIME + 100))
  }
})
