import { describe, expect, test } from 'bun:test'
import { createReadsWait } from '../../src/entities/blueprint-task'
import { costlyWork } from '../../src/tenancy/fair-queue'

const LONG_MS = 30_000

describe('background builds', () => {
  test('the build of an index waits while a costly read of its tenant runs, and not for one of another tenant', async () => {
    const wait = createReadsWait('one', { maxMs: LONG_MS })
    const endOther = costlyWork.acquireSlot({ tenant: 'other', caller: 'somebody' })
    await wait()
    const endRead = costlyWork.acquireSlot({ tenant: 'one', caller: 'somebody' })
    let hasGoneOn = false
    const waiting = wait().then(() => {
      hasGoneOn = true
    })
    await Bun.sleep(50)
    expect(hasGoneOn).toBe(false)
    endRead()
    await waiting
    endOther()
  })

  test('the build of an index continues beside costly reads once it has waited for long enough, and ends its wait when stopped', async () => {
    const endRead = costlyWork.acquireSlot({ tenant: 'one', caller: 'somebody' })
    await createReadsWait('one', { maxMs: 30 })()
    const stop = new AbortController()
    const waiting = createReadsWait('one', { maxMs: LONG_MS, signal: stop.signal })()
    stop.abort()
    await waiting
    endRead()
  })
})
