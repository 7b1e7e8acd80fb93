import type { OpenCtx } from '../../accounts/guard'
import { tooMany } from '../../core/problem'
import { networkOf } from '../../tenancy/caller'

const OF_CALLER = 100 // streams at a time
const OF_TENANT = 10_000
const WAIT = 10 // s

const taken = new Map<string, number>()

/** A place for one more stream; whoever is done with it calls what it returns. @throws 429 */
export function seat({ tenant, actor }: OpenCtx, request: Request): () => void {
  const house = `${tenant} `
  const caller = `${tenant} ${actor?.user ?? `at ${networkOf(request)}`}`
  const has = (name: string) => taken.get(name) ?? 0
  if (has(caller) >= OF_CALLER) tooMany(WAIT, `You have ${OF_CALLER} streams of changes already. Close one.`)
  if (has(house) >= OF_TENANT) tooMany(WAIT, `Here are ${OF_TENANT} streams of changes already, which is the most.`)
  for (const name of [house, caller]) taken.set(name, has(name) + 1)
  return () => {
    for (const name of [house, caller]) {
      if (has(name) > 1) taken.set(name, has(name) - 1)
      else taken.delete(name)
    }
  }
}

/** How many streams there are in this process. */
export const seated = () => [...taken].reduce((sum, [name, count]) => (name.endsWith(' ') ? sum + count : sum), 0)
