import { setTimeout as pause } from 'node:timers/promises'
import { getModel } from '../../blueprints/blueprints'
import { isAltering, pendingModelOf } from '../../blueprints/model'
import { sharesData } from '../../config'
import { yieldToEventLoop } from '../../core/event-loop'
import type { Lease } from '../../jobs/with-lease'
import { invalidate, PROPAGATION_MS } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { createBlueprintTask } from '../blueprint-task'
import { backfill } from './backfill'
import { cleanUp } from './cleanup'

/**
 * Continues the alteration of a blueprint's entities in the background, slice by slice, in one process at a time. After
 * an interruption, requests still see the form in force, and the next use of the blueprint resumes the alteration.
 */
export const resumeAlteration = createBlueprintTask('alteration', 'ALTERATION_INTERRUPTED', runSteps)

async function runSteps(tenant: Tenant, leased: Tenant & Lease, key: string) {
  for (let waitedFor = 0; ; ) {
    leased.signal.throwIfAborted()
    const model = await getModel(tenant, key)
    const { alteration } = model
    if (!alteration || !isAltering(model)) return
    const pending = pendingModelOf(model)
    if (!pending && waitedFor !== alteration.form && sharesData) {
      // Other processes may read with the previous form until they have learned of the change.
      // Aborted: the loop checks the signal.
      await pause(PROPAGATION_MS, undefined, { signal: leased.signal }).catch(() => {})
      waitedFor = alteration.form
      continue
    }
    const hasMore = await (pending ? backfill(leased, model, pending) : cleanUp(leased, model, alteration.form))
    if (!hasMore) invalidate(tenant, 'blueprints')
    await yieldToEventLoop()
  }
}
