const BAR_WIDTH = 24
const LINE_INTERVAL_MS = 1_000
const BAR_INTERVAL_MS = 100

/** Shows what is being done on standard error, until it is disposed of. */
export type ProgressDisplay = Disposable & { update(subject: string, step: string, fraction?: number): void }

/** Returns a bar on a terminal. Elsewhere each step, and every second its progress, is a line of JSON. */
export const showProgress = (): ProgressDisplay => (process.stderr.isTTY ? showBar() : printLines())

function showBar(): ProgressDisplay {
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    update(subject, step, fraction) {
      if (performance.now() < shownAt + BAR_INTERVAL_MS && fraction !== 1) return
      shownAt = performance.now()
      const bar = fraction === undefined ? '' : ` ${formatBar(fraction)} ${Math.floor(fraction * 100)} %`
      process.stderr.write(`\r\x1b[K${subject}: ${step}${bar}`)
    },
    [Symbol.dispose]: () => void process.stderr.write('\r\x1b[K'),
  }
}

const formatBar = (fraction: number) => {
  const filled = Math.round(Math.min(1, fraction) * BAR_WIDTH)
  return `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}]`
}

function printLines(): ProgressDisplay {
  let [printedAt, printed] = [Number.NEGATIVE_INFINITY, '']
  return {
    update(tenant, step, fraction) {
      // A step that counts rows is the same step with another number.
      const name = `${tenant} ${step.replace(/\d+/g, '')}`
      if (name === printed && performance.now() < printedAt + LINE_INTERVAL_MS) return
      ;[printedAt, printed] = [performance.now(), name]
      const done = fraction === undefined ? {} : { done: Math.round(fraction * 1_000) / 1_000 }
      process.stderr.write(`${JSON.stringify({ tenant, step, ...done })}\n`)
    },
    [Symbol.dispose]() {},
  }
}
