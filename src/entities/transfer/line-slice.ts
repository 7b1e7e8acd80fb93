import { Problem } from '../../core/problem'
import type { PlannedLine } from './held-lines'

/** Consecutive lines of an import, which are written together. */
export class LineSlice {
  readonly lines: PlannedLine[] = []
  readonly problems: { line: number; problem: Problem }[] = []
  /** How many lines there are, with those that have a problem or no values. */
  count = 0
  /** The size of the lines without a problem. */
  characters = 0

  add(line: number, characters: number, planned: PlannedLine | Problem | undefined) {
    this.count++
    if (planned instanceof Problem) this.problems.push({ line, problem: planned })
    else if (planned) {
      this.lines.push(planned)
      this.characters += characters
    }
  }
}
