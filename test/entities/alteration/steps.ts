import { getModel } from '../../../src/blueprints/blueprints'
import { pendingModelOf } from '../../../src/blueprints/model'
import { backfill } from '../../../src/entities/alteration/backfill'
import { cleanUp } from '../../../src/entities/alteration/cleanup'
import { type Lease, withLease } from '../../../src/jobs/with-lease'
import { invalidate } from '../../../src/tenancy/cache'
import { getTenant, type Tenant } from '../../../src/tenancy/tenants'
import type { ApiClient, TestResponse } from '../../test-tenant'

/** While a test holds the lease, entities are altered only as far as it steps. */
export type Steps = {
  /** Sends a change, and returns when it has begun or was answered. */
  begin(admin: ApiClient, change: object): Promise<{ answer: Promise<TestResponse> }>
  /** Alters some more entities; returns false when nothing is left to do. */
  step(most: number): Promise<boolean>
  isPreparing(): Promise<boolean>
}

/** Alters the entities of the blueprint `things` by hand. The rest is altered in the background afterwards. */
export async function alterByHand<T>(id: string, work: (steps: Steps) => Promise<T>): Promise<T> {
  const tenant = await getTenant(id)
  for (;;) {
    const outcome = await withLease(tenant, 'alteration things', (leased) => work(createSteps(tenant, leased)))
    if (outcome.state === 'done') return outcome.value
    if (outcome.state === 'lost') throw new Error('The lease was lost.')
    await Bun.sleep(5)
  }
}

function createSteps(tenant: Tenant, leased: Tenant & Lease): Steps {
  const stateOf = async () =>
    (await tenant.db.query("select state from alterations where blueprint = 'things'"))[0]?.[0] as string | undefined
  return {
    async begin(admin, change) {
      const sent = { over: false, answer: admin.put('/blueprints/things', change) }
      sent.answer.finally(() => {
        sent.over = true
      })
      while (!sent.over && (await stateOf()) !== 'preparing') await Bun.sleep(1)
      return sent
    },
    async step(most) {
      if (!['preparing', 'cleaning'].includes((await stateOf()) ?? '')) return false
      const model = await getModel(tenant, 'things')
      const pending = pendingModelOf(model)
      const hasMore = await (pending
        ? backfill(leased, model, pending, most)
        : cleanUp(leased, model, model.alteration?.form ?? 0, most))
      if (!hasMore) invalidate(tenant, 'blueprints')
      return true
    },
    isPreparing: async () => (await stateOf()) === 'preparing',
  }
}

/** Waits until nothing is left to be altered, and returns the alteration if it has failed. */
export async function waitUntilSettled(admin: ApiClient, key = 'things') {
  for (;;) {
    const { alteration } = (await admin.get(`/blueprints/${key}`)).body
    if (!alteration || alteration.state === 'failed') return alteration
    await Bun.sleep(5)
  }
}
