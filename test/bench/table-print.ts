// Prints the table for people, and writes it as Markdown for the documentation.
import type { RowResult, SideFigures } from './table'

const MAX_PATH_LENGTH = 160

const formatMs = (ms: number) => ms.toFixed(ms < 1 ? 2 : ms < 10 ? 1 : 0)
const formatRate = (rate: number) => (rate < 100 ? rate.toFixed(1) : Math.round(rate).toLocaleString('en'))
const formatRatio = (ratio: number) => (ratio < 10 ? ratio.toFixed(2) : ratio.toFixed(1))

/** The rate with p50 and p99, or the three times of a sequence. */
function formatFigures({ perSecond, p50, p99, max, errors }: SideFigures, isSequence: boolean) {
  const times = isSequence
    ? `worst ${formatMs(max)}, p50 ${formatMs(p50)} ms`
    : `${formatRate(perSecond)}/s (${formatMs(p50)} / ${formatMs(p99)})`
  return errors ? `${times} ${errors} ERRORS` : times
}

const isSequence = ({ slowest }: SideFigures) => slowest !== undefined

const formatRatios = ({ ratios }: RowResult, name: string) => {
  const ratio = ratios[name]
  if (!ratio) return ''
  const { median, lowest, highest } = ratio
  return `${formatRatio(median)} (${formatRatio(lowest)}–${formatRatio(highest)})`
}

/** Prints a row as soon as it is measured. */
export function printRow(result: RowResult, sideNames: string[]) {
  console.log(`\n${result.name}`)
  for (const name of sideNames) {
    const figures = result.figures[name]
    if (!figures) continue
    const ratio = formatRatios(result, name)
    const compared = ratio ? `Atoll: ${ratio} of it` : ''
    const slowest = figures.slowest
      ? `\n${' '.repeat(16)}${decodeURIComponent(figures.slowest).slice(0, MAX_PATH_LENGTH)}`
      : ''
    const cells = [
      name.padEnd(14),
      formatFigures(figures, isSequence(figures)).padEnd(36),
      (figures.maxMb ? `${figures.maxMb.toFixed(0)} MB` : '').padEnd(9),
      compared,
    ]
    console.log(`  ${cells.join('').trimEnd()}${slowest}`)
  }
}

/** Returns the table as Markdown. */
export function toMarkdown(results: RowResult[], sideNames: string[]): string {
  const [, ...others] = sideNames
  const head = ['', ...sideNames, ...others.map((name) => `of ${name}`)]
  const lines = results.map((result) => [
    result.name,
    ...sideNames.map((name) => {
      const figures = result.figures[name]
      return figures ? formatFigures(figures, isSequence(figures)) : ''
    }),
    ...others.map((name) => formatRatios(result, name)),
  ])
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
