import { Button, Group, Switch, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Blueprint } from '../api/schema'
import { getNamedTenant } from '../api/session'
import { downloadFile } from '../transfer/file-download'
import { CodeBlock } from '../ui/code-block'
import { ProblemMessage } from '../ui/problem-message'
import type { EntityExample } from './entity-requests'
import { cutTypes, generatedFileQuery } from './generated-types'

type GeneratedCodeProps = { blueprint: Blueprint; examples: EntityExample[]; token: string }

/** Returns a program that uses the generated client. */
function writeProgram(key: string, examples: EntityExample[], token: string): string {
  const tenant = getNamedTenant()
  const options = [
    `  url: ${JSON.stringify(location.origin)},`,
    ...(tenant ? [`  tenant: ${JSON.stringify(tenant)},`] : []),
    `  apiKey: ${JSON.stringify(token)},`,
  ]
  const calls = examples.flatMap(({ client }) => client ?? [])
  return [
    "import { createClient } from './atoll'",
    '',
    `const entities = createClient({\n${options.join('\n')}\n}).entities(${JSON.stringify(key)})`,
    '',
    ...calls,
  ].join('\n')
}

/** The generated client and types, to copy and to download, and how a program uses them. */
export function GeneratedCode({ blueprint: { key, name }, examples, token }: GeneratedCodeProps) {
  const [isWhole, setIsWhole] = useState(false)
  const types = useQuery(generatedFileQuery('types.d.ts'))
  const client = useQuery(generatedFileQuery('client.ts'))
  const shownTypes = types.data && (isWhole ? types.data : cutTypes(types.data, key))
  return (
    <>
      <Group>
        <DownloadButton name="atoll.ts" text={client.data} />
        <DownloadButton name="atoll.d.ts" text={types.data} />
      </Group>
      <Text size="sm" c="dimmed">
        atoll.ts is the client of all blueprints with their types, in one file without dependencies. atoll.d.ts has only
        the types.
      </Text>
      {(types.error ?? client.error) && <ProblemMessage error={types.error ?? client.error} />}
      <CodeBlock label="With the client" code={writeProgram(key, examples, token)} />
      <Switch
        label="Show the types of all blueprints"
        checked={isWhole}
        onChange={(event) => setIsWhole(event.currentTarget.checked)}
      />
      {shownTypes && <CodeBlock label={isWhole ? 'Types of all blueprints' : `Types of ${name}`} code={shownTypes} />}
    </>
  )
}

/** Downloads a text as a file. */
function DownloadButton({ name, text }: { name: string; text: string | undefined }) {
  const download = () => downloadFile(name, [text ?? ''], 'text/plain')
  return (
    <Button variant="default" onClick={download} disabled={text === undefined}>
      Download {name}
    </Button>
  )
}
