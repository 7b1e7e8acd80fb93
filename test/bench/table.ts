// Measures the rows of the table on each server by turns, always from a fresh copy of the data, as after a restart.
import { readFileSync } from 'node:fs'
import { type Figures, measure, measureSequence, medianFigures, medianOf } from './load'
import type { Question } from './questions'
import { createRandom } from './random'
import type { Side } from './sides/side'
import type { TableRow } from './table-rows'

/** Figures of a server, with the most memory it had (MB), and the slowest request of a sequence. */
export type SideFigures = Figures & { maxMb: number; slowest?: string }
/** A ratio: the median of the rounds, the lowest, the highest. */
export type Ratio = { median: number; lowest: number; highest: number }
export type RowResult = {
  name: string
  figures: Record<string, SideFigures>
  /** Atoll beside each of the others: of its rate, or of the time of its slowest answer in a sequence. */
  ratios: Record<string, Ratio>
  rounds: Record<string, SideFigures>[]
}

/** What is measured in a column. It answers undefined where it does not have what is asked. */
export type Contender = {
  name: string
  measure(row: TableRow, questions: Question[], seconds: number): Promise<SideFigures | undefined>
}
export type TableOptions = { contenders: Contender[]; rows: number; seconds: number; rounds: number }

export async function measureRow(
  row: TableRow,
  { contenders, rows, seconds, rounds }: TableOptions,
): Promise<RowResult> {
  const all: Record<string, SideFigures>[] = []
  const included = row.onlyAtoll ? contenders.filter(({ name }) => name.startsWith('Atoll')) : contenders
  for (let round = 0; round < rounds; round++) {
    const questions = row.draw(createRandom(`${row.name} ${round}`), rows)
    const measured: Record<string, SideFigures | undefined> = {}
    // Each begins a round in its turn, because the disk and the processor may be busy with what was before.
    for (const { name, measure } of rotate(included, round)) measured[name] = await measure(row, questions, seconds)
    const figures: Record<string, SideFigures> = {}
    for (const { name } of included) if (measured[name]) figures[name] = measured[name]
    all.push(figures)
  }
  return summarize(row, all)
}

/** A server that is started on a fresh copy of its data for each round of each row. */
export const toContender = (side: Side): Contender => ({
  name: side.name,
  async measure(row, questions, seconds) {
    const requests = questions.map(side.toRequest)
    if (!requests.every((request) => request !== undefined)) return
    await using server = await side.start(row)
    const { url, headers, pid } = server
    const figures = row.inFlight
      ? await measure({ url, headers, requests, connections: row.inFlight, seconds })
      : await measureSequence(url, headers, requests)
    return { ...figures, maxMb: readMemory(pid, 'VmHWM') }
  },
})

function summarize(row: TableRow, rounds: Record<string, SideFigures>[]): RowResult {
  const names = Object.keys(rounds[0]!)
  const figures = Object.fromEntries(
    names.map((name) => {
      const list = rounds.map((round) => round[name]!)
      const worst = list.reduce((one, other) => (other.max > one.max ? other : one))
      const maxMb = Math.max(...list.map((one) => one.maxMb))
      return [name, { ...medianFigures(list), maxMb, slowest: worst.slowest }]
    }),
  )
  const [atoll, ...others] = names
  const ratioOf = (one: SideFigures, other: SideFigures) =>
    row.inFlight ? one.perSecond / other.perSecond : other.max / one.max
  const ratios = Object.fromEntries(
    others.map((name) => [name, toRatio(rounds.map((round) => ratioOf(round[atoll!]!, round[name]!)))]),
  )
  return { name: row.name, figures, ratios, rounds }
}

const toRatio = (values: number[]): Ratio => ({
  median: medianOf(values),
  lowest: Math.min(...values),
  highest: Math.max(...values),
})

const rotate = <T>(values: T[], count: number) => {
  const at = count % values.length
  return [...values.slice(at), ...values.slice(0, at)]
}

/** Memory of a process (MB): what it holds now (`VmRSS`), or the most that it has held (`VmHWM`). */
export function readMemory(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${name}:\\s+(\\d+)`).exec(text)?.[1]) / 1_000
}
