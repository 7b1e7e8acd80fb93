// A process that makes events and delivers them until it is killed: `bun teller.ts <tenant>`. It begins with the first line
// that it reads, a number, and tells the number of each event that was committed.
import { writeSync } from 'node:fs'
import { eventsAreHeardBy, fanOut } from '../../src/jobs/fanout'
import { emitAll } from '../../src/jobs/outbox'
import { runJobs } from '../../src/jobs/runner'
import { jobsAreDoneBy } from '../../src/jobs/work'
import { delivery } from '../../src/plugins/delivery'
import { DELIVERY, hearing } from '../../src/plugins/hearing'
import { tenantNamed } from '../../src/tenancy/tenants'
import { placed } from '../plugins/kit'

const AT_ONCE = 2

jobsAreDoneBy({ [DELIVERY]: delivery }, fanOut)
eventsAreHeardBy(hearing)
for await (const line of console) {
  const tenant = await tenantNamed(process.argv[2]!)
  // Whoever had it before is known to be dead.
  await tenant.write((tx) => tx.ask("update leases set expires = 0, holder = null where name = 'jobs'"))
  runJobs()
  for (let n = Number(line); ; n += AT_ONCE) {
    const several = Array.from({ length: AT_ONCE }, (_, more) => n + more)
    await tenant.write((tx) => emitAll(tenant, tx, several.map(placed)))
    writeSync(1, several.map((one) => `${one}\n`).join(''))
    // Deliveries should keep up.
    await Bun.sleep(15)
  }
}
