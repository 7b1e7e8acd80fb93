// engine: sqlite
import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { listBundledPackages } from '../../.release/bundled-packages'
import { isPermissive, writeLicenses } from '../../.release/licenses'
import { BUN_VERSION, PLATFORMS } from '../../.release/platforms'
import { assertIntegrity } from '../../.release/runtimes'
import { writeSbom } from '../../.release/sbom'

const packages = await listBundledPackages()
const names = packages.map(({ name }) => name)

test('the packages of the server and of the admin page are listed, and those of the development are not', () => {
  expect(names).toEqual(expect.arrayContaining(['elysia', 'pg', 'swagger-ui-dist', 'react', '@mantine/core']))
  for (const name of ['typescript', 'better-sqlite3', 'axe-core', 'playwright-core']) expect(names).not.toContain(name)
})

test('every bundled package has a permissive licence', () => {
  const refused = packages.filter(({ license }) => !isPermissive(license))
  expect(refused.map(({ name, version, license }) => `${name} ${version}: ${license}`)).toEqual([])
})

test.each([
  ['MIT', true],
  ['(MIT OR GPL-3.0)', true],
  ['MIT AND Zlib', true],
  ['', false],
  ['GPL-3.0', false],
  ['LGPL-2.1-or-later', false],
  ['MPL-2.0', false],
  ['MIT AND GPL-2.0', false],
  ['(MIT AND (GPL-2.0 OR MIT))', false],
  ['SEE LICENSE IN LICENSE.md', false],
])('the licence "%s" is permissive: %p', (license, expected) => {
  expect(isPermissive(license)).toBe(expected)
})

test('the file of licences names every package and the runtime, with their texts', () => {
  const text = writeLicenses(packages)
  for (const { name, version, texts } of packages) {
    expect(text).toContain(`\n${name} ${version}\nLicence: `)
    for (const one of texts) expect(text).toContain(one)
  }
  expect(text).toContain(`\nBun ${BUN_VERSION}\n\nBun itself is MIT-licensed.`)
  expect(text).toContain('JavaScriptCore')
})

test('the SBOM lists what is bundled and the runtime, and is the same each time', async () => {
  const root = resolve(import.meta.dir, '../..')
  const [text, again] = [await writeSbom(packages, root, 1_790_000_000), await writeSbom(packages, root, 1_790_000_000)]
  expect(again).toBe(text)
  const bom = JSON.parse(text)
  expect([bom.bomFormat, bom.metadata.timestamp]).toEqual(['CycloneDX', '2026-09-21T14:13:20.000Z'])
  const listed = new Set(
    bom.components.map(({ name, version }: { name: string; version: string }) => `${name} ${version}`),
  )
  expect(listed).toEqual(new Set([...packages.map(({ name, version }) => `${name} ${version}`), `bun ${BUN_VERSION}`]))
  const refs = new Set(bom.dependencies.map(({ ref }: { ref: string }) => ref))
  for (const { dependsOn } of bom.dependencies) for (const ref of dependsOn) expect(refs).toContain(ref)
})

test('package-lock.json has the hash of every runtime, and another archive is refused', () => {
  expect(PLATFORMS.map(({ name }) => name)).toEqual(expect.arrayContaining(['linux-x64', 'linux-arm64', 'windows-x64']))
  for (const { runtime } of PLATFORMS)
    expect(() => assertIntegrity(runtime, Buffer.from('other'))).toThrow('does not have the hash')
  expect(() => assertIntegrity('@oven/bun-plan9-x64', Buffer.from(''))).toThrow('package-lock.json has no')
})
