import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { queueMail } from '../../src/accounts/mail/mails'
import { cloneTenant } from '../../src/backups/clone'
import { config } from '../../src/config'
import { HOUR_MS, moveClock, now } from '../../src/core/clock'
import { runDueJobs } from '../../src/jobs/runner'
import { resumeOutgoing } from '../../src/tenancy/outgoing-hold'
import { getTenant, type Tenant } from '../../src/tenancy/tenants'
import { startSmtpServer } from '../fakes/smtp-server'
import { createClientOf, createTenantWithThings, freshId } from './fixtures'

setDefaultTimeout(60_000)

let box: Awaited<ReturnType<typeof startSmtpServer>>
beforeAll(async () => {
  box = await startSmtpServer()
  config.ATOLL_SMTP_URL = box.url
})
afterEach(() => moveClock())
afterAll(async () => {
  config.ATOLL_SMTP_URL = ''
  await box.close()
})

const queueInvitation = (tenant: Tenant, to: string) =>
  tenant.write((tx) => queueMail(tenant, tx, { to, template: 'invitation', data: { inviter: 'Ada', workspace: 'A' } }))

/** Returns the addresses and states of all mails of a tenant, as its admin sees them. */
async function listMails(id: string, admin: string) {
  const { body } = await (await createClientOf(id, admin)).get('/mails?sort=created')
  return body.map(({ to, state }: { to: string; state: string }) => [to, state])
}

test('a mail of a copy is kept in its outbox, and leaves once only after the operator lets the copy act outside', async () => {
  const own = await createTenantWithThings()
  const as = freshId()
  const [early, late] = [`early@${as}.test`, `late@${as}.test`]
  await cloneTenant(own.id, as)
  await queueInvitation(await getTenant(as), early)
  await runDueJobs(await getTenant(as))
  expect(await listMails(as, own.users.admin)).toEqual([[early, 'kept']])
  await resumeOutgoing(as)
  await queueInvitation(await getTenant(as), late)
  await runDueJobs(await getTenant(as))
  moveClock(now() + HOUR_MS)
  await runDueJobs(await getTenant(as))
  expect(await listMails(as, own.users.admin)).toEqual([
    [early, 'kept'],
    [late, 'sent'],
  ])
  // The kept one stays to be read: its link may have expired.
  expect([box.to(early).length, box.to(late).length]).toEqual([0, 1])
})

test('a mail that waited in the origin for another attempt is sent by the origin only, once', async () => {
  const own = await createTenantWithThings()
  const as = freshId()
  const to = `waiting@${as}.test`
  box.refuse(to, 451, 1)
  const origin = await getTenant(own.id)
  await queueInvitation(origin, to)
  await runDueJobs(origin)
  expect(await listMails(own.id, own.users.admin)).toEqual([[to, 'waiting']])
  await cloneTenant(own.id, as)
  expect(await listMails(as, own.users.admin)).toEqual([])
  await resumeOutgoing(as)
  moveClock(now() + HOUR_MS)
  for (const id of [as, own.id]) await runDueJobs(await getTenant(id))
  expect(await listMails(own.id, own.users.admin)).toEqual([[to, 'sent']])
  expect(box.to(to)).toHaveLength(1)
})
