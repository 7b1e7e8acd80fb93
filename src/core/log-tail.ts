/** Half of how much of the log is kept in memory, in characters. */
const MAX_HALF_LENGTH = 128 << 10

let isKept = false
let [older, newer]: [string[], string[]] = [[], []]
let newerLength = 0

/** Begins to keep the latest lines of the log in memory, for the operator. */
export function startLogTail() {
  isKept = true
}

/** Keeps a line with its line break. When one half is full, the other one is forgotten. */
export function keepLogLine(line: string) {
  if (!isKept) return
  if (newerLength > MAX_HALF_LENGTH) {
    older = newer
    newer = []
    newerLength = 0
  }
  newer.push(line)
  newerLength += line.length
}

/** Returns the lines that are kept, the latest first. */
export const readLogTail = (): string[] => [...older, ...newer].reverse()
