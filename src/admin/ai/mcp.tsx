import { Group, SegmentedControl, Stack, Table, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { getNamedTenant } from '../api/session'
import { ApiTokenButton, useApiToken } from '../ui/api-token'
import { CodeBlock } from '../ui/code-block'
import { ProblemMessage } from '../ui/problem-message'
import { TOKEN_PLACEHOLDER } from '../ui/request-code'
import { Screen } from '../ui/screen'
import classes from './mcp.module.css'

const LIST_TOOLS = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

type ToolList = { result?: { tools: { name: string; description?: string }[] } }

const toolsQuery = {
  queryKey: ['mcp', 'tools'],
  queryFn: async () => {
    const headers = { accept: 'application/json, text/event-stream' }
    const answer = (await fetchData(api.POST('/api/mcp', { body: LIST_TOOLS, headers }))) as ToolList
    return answer.result?.tools ?? []
  },
}

/** The configurations of the assistants that are used most, each with the name of its file or command. */
const clients = {
  'Claude Code': {
    label: 'In a terminal',
    write: (url: string, headers: Record<string, string>) =>
      [
        `claude mcp add --transport http atoll ${url}`,
        ...Object.entries(headers).map(([name, value]) => `--header "${name}: ${value}"`),
      ].join(' \\\n  '),
  },
  Cursor: {
    label: '.cursor/mcp.json',
    write: (url: string, headers: Record<string, string>) =>
      JSON.stringify({ mcpServers: { atoll: { url, headers } } }, null, 2),
  },
  'VS Code': {
    label: '.vscode/mcp.json',
    write: (url: string, headers: Record<string, string>) =>
      JSON.stringify({ servers: { atoll: { type: 'http', url, headers } } }, null, 2),
  },
}
type ClientName = keyof typeof clients

/** How an assistant elsewhere connects, and what it may do then. */
export function Mcp() {
  const [client, setClient] = useState<ClientName>('Claude Code')
  const tools = useQuery(toolsQuery)
  const apiToken = useApiToken('Assistant by MCP')
  const url = `${location.origin}/api/mcp`
  const tenant = getNamedTenant()
  const headers = { 'X-Api-Key': apiToken.token ?? TOKEN_PLACEHOLDER, ...(tenant && { tenant }) }
  const { label, write } = clients[client]
  return (
    <Screen title="MCP" request={{ method: 'POST', path: '/api/mcp', body: LIST_TOOLS }}>
      <Stack className={classes.page} gap="sm">
        <Text>
          Assistants that speak the Model Context Protocol work with your data and tools, with the rights of the person
          whose token they use.
        </Text>
        <CodeBlock label="Address" code={url} />
        <SegmentedControl
          aria-label="Assistant"
          w="fit-content"
          data={Object.keys(clients)}
          value={client}
          onChange={(chosen) => setClient(chosen as ClientName)}
        />
        <CodeBlock label={label} code={write(url, headers)} />
        <Group>
          <ApiTokenButton {...apiToken} />
        </Group>
        <Title order={2} mt="md">
          What it may do
        </Title>
        {tools.error && <ProblemMessage error={tools.error} />}
        {tools.data?.length === 0 && <Text c="dimmed">Nothing yet: there are no blueprints and no tools.</Text>}
        {!!tools.data?.length && <ToolTable tools={tools.data} />}
      </Stack>
    </Screen>
  )
}

const ToolTable = ({ tools }: { tools: { name: string; description?: string }[] }) => (
  <Table fz="sm">
    <Table.Thead>
      <Table.Tr>
        <Table.Th>Tool</Table.Th>
        <Table.Th>Description</Table.Th>
      </Table.Tr>
    </Table.Thead>
    <Table.Tbody>
      {tools.map(({ name, description }) => (
        <Table.Tr key={name}>
          <Table.Td className={classes.name}>{name}</Table.Td>
          <Table.Td>{description}</Table.Td>
        </Table.Tr>
      ))}
    </Table.Tbody>
  </Table>
)
