// A process that emits events and delivers them until it is killed: `delivery-process <tenant>`. It begins with the
// first line that it reads, a number, and prints the number of each event that was committed.
import { writeSync } from 'node:fs'
import '../../src/app'
import { emitAll } from '../../src/jobs/outbox'
import { JobRunner } from '../../src/jobs/runner'
import { getTenant } from '../../src/tenancy/tenants'
import { newOrderEvent } from '../plugins/fixtures'

const EVENTS_PER_COMMIT = 2

for await (const line of console) {
  const tenant = await getTenant(process.argv[2]!)
  // The previous holder of the lease is known to be dead.
  await tenant.write((tx) => tx.query("update leases set expires = 0, holder = null where name = 'jobs'"))
  new JobRunner().start()
  for (let n = Number(line); ; n += EVENTS_PER_COMMIT) {
    const numbers = Array.from({ length: EVENTS_PER_COMMIT }, (_, more) => n + more)
    await tenant.write((tx) => emitAll(tenant, tx, numbers.map(newOrderEvent)))
    writeSync(1, numbers.map((one) => `${one}\n`).join(''))
    // The pause lets the deliveries keep up.
    await Bun.sleep(15)
  }
}
