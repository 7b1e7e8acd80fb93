import { ftruncateSync, writeSync } from 'node:fs'
import { listFramePages } from '../../tenancy/databases'
import type { LogBlock } from './log-segment'

/** Writes the pages of a block into an open database file. */
export function applyBlock({ frames, pageSize }: LogBlock, output: number) {
  for (const { number, page, databasePages } of frames.flatMap((part) => [...listFramePages(part, pageSize)])) {
    writeSync(output, page, 0, pageSize, (number - 1) * pageSize)
    if (databasePages) ftruncateSync(output, databasePages * pageSize)
  }
}
