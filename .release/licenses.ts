import { readFileSync } from 'node:fs'
import type { BundledPackage } from './bundled-packages'
import { BUN_VERSION } from './platforms'

/** Licences that ask for no more than their text, which THIRD_PARTY_LICENSES.txt repeats. */
export const PERMISSIVE_LICENSES = [
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
  'Zlib',
]

/** Tells whether an SPDX expression lets us choose, or names only, permissive licences. */
export function isPermissive(expression: string): boolean {
  const inner = expression.replace(/^\((.*)\)$/, '$1')
  if (/[()]/.test(inner)) return false
  return inner
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((license) => PERMISSIVE_LICENSES.includes(license.trim())))
}

const RULE = '='.repeat(80)

/** Returns the licences of everything that the binary contains besides Atoll itself. */
export function writeLicenses(packages: BundledPackage[]): string {
  const introduction = `The binary of Atoll contains the runtime Bun ${BUN_VERSION} and the ${packages.length} npm packages below, whose licences follow.`
  const sections = packages.map(({ name, version, license, author, texts }) => {
    const by = author ? `\nAuthor: ${author.replace(/\s*[<(].*$/, '')}` : ''
    const text =
      texts.join('\n\n') || `The package has no file with the text of its licence; package.json names ${license}.`
    return `${name} ${version}\nLicence: ${license}${by}\n\n${text}`
  })
  return `${[introduction, readRuntimeLicense(), ...sections].join(`\n\n${RULE}\n`)}\n`
}

/** Bun's documents, of the same version, list what its runtime is made of. */
function readRuntimeLicense(): string {
  const path = new URL(import.meta.resolve('bun-types/docs/project/license.mdx'))
  const text = readFileSync(path, 'utf8').replace(/^---[\s\S]*?---\s*/, '')
  return `Bun ${BUN_VERSION}\n\n${text.trim()}`
}
