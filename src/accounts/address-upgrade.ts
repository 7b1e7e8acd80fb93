import { eq, sql } from 'drizzle-orm'
import { log } from '../core/log'
import { toAddressKey } from '../core/text-normalization'
import type { Lease } from '../jobs/with-lease'
import { Conflict } from '../storage/errors'
import { writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { emailChanges } from './mail/tables'
import { invites } from './memberships/tables'
import { users } from './tables'

/** Stores the keys anew of addresses whose domain was written in Punycode, which earlier releases kept as it was. */
export async function upgradeAddressKeys(tenant: Tenant & Lease) {
  for (const table of [users, invites, emailChanges]) {
    const rows = await tenant.db
      .select({ _id: table._id, emailKey: table.emailKey })
      .from(table)
      .where(sql`replace(${table.emailKey}, 'xn--', '') <> ${table.emailKey}`)
    for (const { _id, emailKey } of rows) {
      const upgraded = toAddressKey(emailKey ?? '')
      if (upgraded === emailKey) continue
      try {
        await writeInvalidating(tenant, 'actors', (tx) =>
          tx.update(table).set({ emailKey: upgraded }).where(eq(table._id, _id)),
        )
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        // Somebody else has the address in its other notation. This one goes on as an address of its own.
        log.warn({ event: 'address-key-taken', tenant: tenant.tenant, row: _id })
      }
    }
  }
}
