import { modelOf } from '../../../src/blueprints/blueprints'
import { comingOf } from '../../../src/blueprints/model'
import { clean } from '../../../src/entities/altering/clean'
import { prepare } from '../../../src/entities/altering/prepare'
import { holding, type Lease } from '../../../src/jobs/holding'
import { forget } from '../../../src/tenancy/memory'
import { type Tenant, tenantNamed } from '../../../src/tenancy/tenants'
import type { Answer, Client } from '../../house'

/** While a test is the one whose turn it is, entities are altered only as far as it says. */
export type Steps = {
  /** Sends a change, and comes back when it has begun, or was answered. */
  begin(admin: Client, change: object): Promise<{ answer: Promise<Answer> }>
  /** Alters some more; false when nothing is left to do. */
  step(most: number): Promise<boolean>
  isPreparing(): Promise<boolean>
}

/** Alters the entities of the blueprint `things` by hand. Whatever is left after that is done in the background. */
export async function byHand<T>(id: string, work: (steps: Steps) => Promise<T>): Promise<T> {
  const tenant = await tenantNamed(id)
  for (;;) {
    const outcome = await holding(tenant, 'alteration things', (held) => work(steps(tenant, held)))
    if (outcome.state === 'done') return outcome.value
    if (outcome.state === 'lost') throw new Error('The lease was lost.')
    await Bun.sleep(5)
  }
}

function steps(tenant: Tenant, held: Tenant & Lease): Steps {
  const stateOf = async () =>
    (await tenant.db.ask("select state from alterations where blueprint = 'things'"))[0]?.[0] as string | undefined
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
      const model = await modelOf(tenant, 'things')
      const coming = comingOf(model)
      const goesOn = await (coming
        ? prepare(held, model, coming, most)
        : clean(held, model, model.alteration?.form ?? 0, most))
      if (!goesOn) forget(tenant, 'blueprints')
      return true
    },
    isPreparing: async () => (await stateOf()) === 'preparing',
  }
}

/** Waits until nothing is left to be altered. */
export async function settled(admin: Client, key = 'things') {
  for (;;) {
    const { alteration } = (await admin.get(`/blueprints/${key}`)).body
    if (!alteration || alteration.state === 'failed') return alteration
    await Bun.sleep(5)
  }
}
