import { expect } from 'bun:test'
import { freeReadMs } from '../src/entities/query/read-costs'
import { costlyWork } from '../src/tenancy/fair-queue'
import type { TestResponse } from './test-tenant'

/** Returns the answer to a read that must wait for other costly work of its tenant once it has begun. */
export async function expectToTakeTurns(tenant: string, send: () => Promise<TestResponse>): Promise<TestResponse> {
  const defaults = { ...freeReadMs }
  // Every read is costly from its second statement on.
  Object.assign(freeReadMs, { thread: 0, waiting: 0 })
  const held = Promise.withResolvers<void>()
  const occupant = costlyWork.run({ tenant, caller: 'another caller' }, () => held.promise)
  try {
    let hasAnswered = false
    const answer = send().finally(() => {
      hasAnswered = true
    })
    await Bun.sleep(50)
    expect(hasAnswered).toBe(false)
    held.resolve()
    return await answer
  } finally {
    held.resolve()
    await occupant
    Object.assign(freeReadMs, defaults)
  }
}
