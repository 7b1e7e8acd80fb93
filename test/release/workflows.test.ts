// engine: sqlite
import { expect, test } from 'bun:test'
import { Glob } from 'bun'

const workflows = [...new Glob('*.yml').scanSync('.github/workflows')]
const read = (name: string) => Bun.file(`.github/workflows/${name}`).text()

test.each(workflows)('each action of %s is a commit, with its tag as comment', async (name) => {
  const lines = (await read(name)).split('\n').filter((line) => /\buses:/.test(line))
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) expect(line).toMatch(/uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+){2}$/)
})

test('an action has one commit in all workflows, and each commit one tag', async () => {
  const uses = (await Promise.all(workflows.map(read))).flatMap((text) => [
    ...text.matchAll(/uses: (\S+)@(\S+) # (\S+)/g),
  ])
  for (const [, action, commit, tag] of uses)
    for (const [, other, otherCommit, otherTag] of uses)
      if (other === action) expect([action, otherCommit, otherTag]).toEqual([action, commit, tag])
})

test('a release is signed after its hashes were compared, and before it is published', async () => {
  const { jobs, permissions } = Bun.YAML.parse(await read('release.yml')) as {
    permissions: Record<string, string>
    jobs: { release: { permissions: Record<string, string>; steps: { uses?: string; run?: string; with?: object }[] } }
  }
  const { steps, permissions: own } = jobs.release
  const find = (what: RegExp) => steps.findIndex(({ uses, run }) => what.test(uses ?? run ?? ''))
  const signing = find(/^actions\/attest-build-provenance@/)
  expect([find(/^sha256sum --check/) + 1, signing + 1]).toEqual([signing, find(/^gh release create/)])
  expect(steps[signing]!.with).toEqual({ 'subject-path': 'dist/release/*' })
  expect(own).toEqual({ contents: 'write', 'id-token': 'write', attestations: 'write' })
  expect(permissions).toEqual({ contents: 'read' })
})
