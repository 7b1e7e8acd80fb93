import { expect, setDefaultTimeout, test } from 'bun:test'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { databaseUrl } from '../storage/engines'

setDefaultTimeout(60_000)

/** Servers of one installation: as many as its engine allows. */
const NODES = databaseUrl ? 2 : 1
const env = { ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ...(databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }) }

test('a schedule runs once each second on several servers, and goes on when one of them is stopped', async () => {
  const receiver = startWebhookReceiver()
  const { deliveries, url } = receiver
  const waitForRuns = async (count: number) => {
    while (deliveries.length < count) await Bun.sleep(20)
  }
  const places = Array.from({ length: NODES }, () => ({ at: createTempFolder(), env }))
  const id = `timed-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(places[0]!, id)
  const servers = await Promise.all(places.map((place) => startAtoll(place)))
  try {
    const [first] = servers
    const admin = apiCaller(first!.url, await signIn(first!.url, id))
    // Each server opens the tenant.
    for (const server of servers)
      await apiCaller(server.url, { tenant: id })('GET', '/api/configurations/app-configuration')
    const body = { trigger: { kind: 'schedule', cron: '* * * * * *' }, target: { kind: 'http', url } }
    expect((await admin('POST', '/api/integrations', body)).status).toBe(201)
    await waitForRuns(2)
    const listDueTimes = () => deliveries.map(({ body }) => (body.metadata as { due: string }).due)
    expect(new Set(listDueTimes()).size).toBe(deliveries.length)
    expect(listDueTimes()).toEqual(listDueTimes().toSorted())

    await first!.end('SIGTERM')
    const before = deliveries.length
    if (NODES === 1) servers.push(await startAtoll(places[0]!))
    await waitForRuns(before + 2)
    expect(listDueTimes()).toEqual(listDueTimes().toSorted())
  } finally {
    for (const server of servers) await server.end('SIGKILL')
    await receiver.stop()
  }
})
