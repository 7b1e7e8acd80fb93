import { createHash } from 'node:crypto'
import type { BundledPackage } from './bundled-packages'
import { runCommand } from './command'

type Component = { 'bom-ref': string; name: string; version: string; scope?: string; properties?: { name: string }[] }
type Bom = {
  serialNumber: string
  metadata: { timestamp: string; lifecycles: unknown; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/** Marks what npm says of an installation, which says nothing of a binary. */
const INSTALLATION_PROPERTY = /^cdx:npm:package:(development|extraneous|path)$/

/**
 * Returns a CycloneDX document of what is in the binaries: npm writes it from package-lock.json, and packages that are
 * not bundled are left out. The same packages and time (s since 1970) give the same document.
 */
export async function writeSbom(packages: BundledPackage[], root: string, time: number): Promise<string> {
  const command = ['npm', 'sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application']
  const bom: Bom = JSON.parse(await runCommand(command, { cwd: root }))
  const bundled = new Set(packages.map(({ name, version }) => `${name}@${version}`))
  const isIncluded = ({ name, version }: Component) => bundled.has(`${name}@${version}`) || name === 'bun'
  bom.components = bom.components
    .filter(isIncluded)
    .map(({ properties = [], ...component }) => ({
      ...component,
      scope: 'required',
      properties: properties.filter(({ name }) => !INSTALLATION_PROPERTY.test(name)),
    }))
  const missing = [...bundled].filter((id) => !bom.components.some(({ name, version }) => id === `${name}@${version}`))
  if (missing.length) throw new Error(`package-lock.json has no ${missing.join(', ')}.`)
  const main = bom.metadata.component
  main.name = 'atoll'
  const refs = new Set([main, ...bom.components].map((component) => component['bom-ref']))
  bom.dependencies = bom.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }))
  bom.metadata.timestamp = new Date(time * 1_000).toISOString()
  bom.metadata.lifecycles = [{ phase: 'build' }]
  const hash = createHash('sha256').update(JSON.stringify(bom.components)).digest('hex')
  bom.serialNumber = `urn:uuid:${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`
  return `${JSON.stringify(bom, null, 2)}\n`
}
