// engine: sqlite
import { expect, test } from 'bun:test'
import { countHabits, type Habits, RECORD } from './documents/habits'

const recorded: Habits = await Bun.file(RECORD).json()
const counted = await countHabits()

test.each(Object.keys(counted))('no habit of %s occurs more often than recorded', (kind) => {
  // `bun test/documents/habits.ts` records fewer.
  for (const [habit, count] of Object.entries(counted[kind]!))
    expect(count, `${kind}: ${habit}`).toBeLessThanOrEqual(recorded[kind]?.[habit] ?? 0)
})
