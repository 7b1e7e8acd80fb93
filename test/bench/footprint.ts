// The footprint of a server: import rate, disk space, start time, and idle memory.
import { medianOf } from './load'
import type { Side } from './sides/side'
import { readMemory } from './table'

const IDLE_MS = 1_000 // until memory is read

export type Footprint = { importedPerSecond: number; sizeMb: number; startMs: number; idleMb: number }

export async function measureFootprint(side: Side, importedPerSecond: number, rounds: number): Promise<Footprint> {
  const starts: { startMs: number; idleMb: number }[] = []
  for (let round = 0; round < rounds; round++) {
    await using server = await side.start({ hasSingleIndexes: true })
    await Bun.sleep(IDLE_MS)
    starts.push({ startMs: server.startMs, idleMb: readMemory(server.pid, 'VmRSS') })
  }
  return {
    importedPerSecond,
    sizeMb: side.measureSize(),
    startMs: medianOf(starts.map(({ startMs }) => startMs)),
    idleMb: medianOf(starts.map(({ idleMb }) => idleMb)),
  }
}

export function printFootprint(name: string, { importedPerSecond, sizeMb, startMs, idleMb }: Footprint) {
  const cells = [
    `${Math.round(importedPerSecond).toLocaleString('en')} rows/s imported`,
    `${sizeMb.toFixed(1)} MB on the disk`,
    `start ${startMs.toFixed(0)} ms`,
    `idle ${idleMb.toFixed(0)} MB`,
  ]
  console.log(`${name.padEnd(14)} ${cells.join(', ')}`)
}
