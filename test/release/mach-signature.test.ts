// engine: sqlite
import { expect, test } from 'bun:test'
import { isSignatureValid, signAdHoc } from '../../.release/mach-signature'

const CODE_LENGTH = 3 * 4_096 + 100

/** Returns an executable with a segment of code, one of link data at its end, and a signature of zeros. */
function createExecutable(): Buffer {
  const file = Buffer.alloc(CODE_LENGTH + 200, 7)
  file.writeUInt32LE(0xfeedfacf, 0)
  file.writeUInt32LE(3, 16)
  writeSegment(file, 32, '__TEXT', 0, 4_096)
  writeSegment(file, 104, '__LINKEDIT', 4_096, file.length - 4_096)
  for (const [index, value] of [0x1d, 16, CODE_LENGTH, 200].entries()) file.writeUInt32LE(value, 176 + index * 4)
  return file.fill(0, CODE_LENGTH)
}

function writeSegment(file: Buffer, at: number, name: string, start: number, length: number) {
  file.writeUInt32LE(0x19, at)
  file.writeUInt32LE(72, at + 4)
  file.write(name.padEnd(16, '\0'), at + 8, 'latin1')
  for (const [index, value] of [start, length, start, length].entries())
    file.writeBigUInt64LE(BigInt(value), at + 24 + index * 8)
}

test('an executable without a signature that fits is invalid, and valid once it is signed', () => {
  const file = createExecutable()
  expect(isSignatureValid(file)).toBe(false)
  const signed = signAdHoc(file, 'atoll')
  expect(isSignatureValid(signed)).toBe(true)
  expect(isSignatureValid(signAdHoc(signed, 'atoll'))).toBe(true)
  expect(signed.subarray(256, CODE_LENGTH).equals(file.subarray(256, CODE_LENGTH))).toBe(true)
})

test('the commands of a signed executable name the length of its signature and of its last segment', () => {
  const signed = signAdHoc(createExecutable(), 'atoll')
  expect(signed.readUInt32LE(176 + 12)).toBe(signed.length - CODE_LENGTH)
  expect(Number(signed.readBigUInt64LE(104 + 48))).toBe(signed.length - 4_096)
})

test.each([40, 4_096, CODE_LENGTH - 1])('a change of byte %d makes the signature invalid', (at) => {
  const signed = signAdHoc(createExecutable(), 'atoll')
  signed[at]! ^= 1
  expect(isSignatureValid(signed)).toBe(false)
})

test('a signature that covers only a part of the executable is invalid', () => {
  const signed = signAdHoc(createExecutable(), 'atoll')
  const directory = CODE_LENGTH + 20
  signed.writeUInt32BE(4_096, directory + 32)
  signed.writeUInt32BE(1, directory + 28)
  expect(isSignatureValid(signed)).toBe(false)
})

test('a file of another format is refused', () => {
  expect(() => isSignatureValid(Buffer.alloc(100))).toThrow('This is not an executable of macOS.')
})
