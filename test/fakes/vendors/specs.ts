import { dirname, join, resolve } from 'node:path'
import { Glob } from 'bun'

const STRIPE_FIXTURES_FILE = 'stripe-fixtures3.json'

/**
 * Returns the folder of the vendors' API documents: `VENDOR_SPECS`, otherwise a folder `specs` somewhere beside this
 * project.
 */
function findSpecsFolder(): string | undefined {
  if (process.env.VENDOR_SPECS) return process.env.VENDOR_SPECS
  const root = resolve(import.meta.dir, '../../..')
  for (const above of [join(root, '..'), join(root, '../..')]) {
    const [found] = [
      ...new Glob(`*/specs/${STRIPE_FIXTURES_FILE}`).scanSync({ cwd: above, followSymlinks: false }),
    ].sort()
    if (found) return join(above, dirname(found))
  }
}

const specsFolder = findSpecsFolder()
const readSpec = async (name: string) => {
  const file = specsFolder ? Bun.file(join(specsFolder, name)) : undefined
  return (await file?.exists()) ? file?.json() : undefined
}

// biome-ignore lint/suspicious/noExplicitAny: documents of the vendors
type Any = any

/** The API documents that the vendors publish, where they are available. */
export const specs: { stripe?: Record<string, Any>; subscriptions?: Any; webhooks?: Any } = {
  stripe: (await readSpec(STRIPE_FIXTURES_FILE))?.resources,
  subscriptions: await readSpec('paypal-billing-subscriptions-v1.json'),
  webhooks: await readSpec('paypal-notifications-webhooks-v1.json'),
}

/** Whether all documents are available. Without them, the tests that need them are skipped, and a warning says so. */
export const hasSpecs = !!specs.stripe && !!specs.subscriptions && !!specs.webhooks
if (!hasSpecs) console.warn("SKIPPED: the tests with the vendors' API documents. Set VENDOR_SPECS to their folder.")
