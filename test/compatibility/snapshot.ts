import { expect } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Compares lines with a file of this folder, or writes it where `UPDATE_SNAPSHOTS` is set. */
export function expectSnapshot(name: string, lines: string[]) {
  const path = join(import.meta.dir, name)
  const text = `${lines.join('\n')}\n`
  if (process.env.UPDATE_SNAPSHOTS || !existsSync(path)) writeFileSync(path, text)
  expect(text).toBe(readFileSync(path, 'utf8'))
}
