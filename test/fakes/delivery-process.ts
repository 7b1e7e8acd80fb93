// A process that makes events and delivers them until it is killed: `bun delivery-process.ts <tenant>`. It begins with the first line
// that it reads, a number, and tells the number of each event that was committed.
import { writeSync } from 'node:fs'
import '../../src/app'
import { emitAll } from '../../src/jobs/outbox'
import { startRunner } from '../../src/jobs/runner'
import { getTenant } from '../../src/tenancy/tenants'
import { newOrderEvent } from '../plugins/fixtures'

const EVENTS_PER_COMMIT = 2

for await (const line of console) {
  const tenant = await getTenant(process.argv[2]!)
  // Whoever had it before is known to be dead.
  await tenant.write((tx) => tx.query("update leases set expires = 0, holder = null where name = 'jobs'"))
  startRunner()
  for (let n = Number(line); ; n += EVENTS_PER_COMMIT) {
    const several = Array.from({ length: EVENTS_PER_COMMIT }, (_, more) => n + more)
    await tenant.write((tx) => emitAll(tenant, tx, several.map(newOrderEvent)))
    writeSync(1, several.map((one) => `${one}\n`).join(''))
    // Deliveries should keep up.
    await Bun.sleep(15)
  }
}
