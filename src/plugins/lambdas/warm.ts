import type { Tenant } from '../../tenancy/tenants'
import { pool } from './sandbox/pool'

/** Has a process wait for the lambdas of a tenant, if there are any: to start one takes longer than most of them run. */
export async function keepWarm({ db }: Pick<Tenant, 'db'>) {
  const [some] = await db.ask('select 1 from lambdas limit 1')
  if (some) pool.ready()
}
