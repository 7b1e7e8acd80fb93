import { issueSetupToken } from '../accounts/links/setup-link'
import { Problem } from '../core/problem'
import { createDemo, createDemoSigninLink } from '../demo/demo'
import { isRegistered } from '../tenancy/tenant-list'
import { createTenant, getDefaultTenantId, getTenant } from '../tenancy/tenants'
import { invocation } from './invocation'

/** The tenant that the first start makes. */
const FIRST_TENANT = 'main'

/** Creates the tenant of an installation that has none. */
export async function createFirstTenant() {
  // Another server of the installation may create it at the same time.
  await createTenant(FIRST_TENANT).catch((error) => {
    if (!(error instanceof Problem && error.code === 'TENANT_EXISTS')) throw error
  })
}

/** Returns the token of a set-up link, or undefined when the tenant needs none or cannot be opened. */
const findSetupToken = async (id: string) =>
  getTenant(id)
    .then(issueSetupToken)
    // A damaged or suspended tenant must not keep the server from the others.
    .catch(() => undefined)

type ServerStart = { url: string; isDemo: boolean; isFirstStart: boolean; print: (text: string) => void }

/** Prints how to get into a server that nobody has used yet: a link to set it up, or the sign-in of its demo. */
export async function printFirstSteps({ url, isDemo, isFirstStart, print }: ServerStart) {
  if (isDemo && isFirstStart) print(await createDemo(Number(new URL(url).port), invocation))
  if (isDemo && (await isRegistered('demo'))) {
    const link = await createDemoSigninLink(url)
    if (link) print(`Open the admin page with this sign-in link (valid once, for one hour):\n\n${link}\n`)
    return
  }
  const id = await getDefaultTenantId()
  const token = id && (await findSetupToken(id))
  if (token)
    print(
      `The tenant "${id}" has no administrator yet. Open this link to create one (valid once, for 24 hours):\n\n${url}/admin/set-up#${token}\n`,
    )
}
