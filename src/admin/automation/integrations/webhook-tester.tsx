import { Button, Checkbox, Group, Select, Stack, Text, TextInput } from '@mantine/core'
import { IconSend } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { Integration } from '../../api/schema'
import { commonHeaders, getNamedTenant } from '../../api/session'
import { CodeBlock } from '../../ui/code-block'
import { CodeEditor } from '../../ui/code-editor'
import { Details } from '../../ui/details'
import { ProblemMessage } from '../../ui/problem-message'
import { quoteForShell } from '../../ui/request-code'
import { StateTag } from '../../ui/state-tag'
import { saveByKey } from '../lambdas/save-shortcut'
import { type Header, HeadersInput } from './headers-input'

const METHODS = ['POST', 'GET', 'PUT', 'DELETE']

type TestRequest = { method: string; query: string; headers: Header[]; body: string; isGuest: boolean }

const toAddress = ({ _id }: Integration, query: string) => {
  const tenant = getNamedTenant()
  const parameters = [query.replace(/^\?/, ''), tenant && `tenant=${encodeURIComponent(tenant)}`].filter(Boolean)
  return `${location.origin}/api/webhooks/${_id}${parameters.length ? `?${parameters.join('&')}` : ''}`
}

/** The answer belongs to the target, so a refusal is shown as it came. */
async function sendRequest(address: string, { method, headers, body, isGuest }: TestRequest) {
  const started = performance.now()
  const response = await fetch(address, {
    method,
    credentials: isGuest ? 'omit' : 'same-origin',
    headers: [
      ...(isGuest ? [] : Object.entries(commonHeaders())),
      ...headers.filter(({ name }) => name).map(({ name, value }): [string, string] => [name, value]),
    ],
    body: method === 'GET' ? undefined : body,
  })
  const text = await response.text()
  const durationMs = Math.round(performance.now() - started)
  return { status: response.status, headers: [...response.headers], text, durationMs }
}

/** Returns JSON with line breaks, and any other text as it is. */
function indentJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

const writeCurl = (address: string, { method, headers, body }: TestRequest) =>
  [
    `curl -X ${method}`,
    ...headers.filter(({ name }) => name).map(({ name, value }) => `  -H ${quoteForShell(`${name}: ${value}`)}`),
    ...(method === 'GET' ? [] : [`  -d ${quoteForShell(body)}`]),
    `  ${quoteForShell(address)}`,
  ].join(' \\\n')

/** The address of a webhook, and a form that calls it and shows the answer. */
export function WebhookTester({ integration }: { integration: Integration }) {
  const [request, setRequest] = useState<TestRequest>({
    method: 'POST',
    query: '',
    headers: [{ id: 0, name: 'content-type', value: 'application/json' }],
    body: '{\n  "name": "Ada"\n}',
    isGuest: false,
  })
  const address = toAddress(integration, request.query)
  const call = useMutation({ mutationFn: () => sendRequest(address, request) })
  const change = (part: Partial<TestRequest>) => setRequest((before) => ({ ...before, ...part }))
  return (
    <Stack gap="sm" onKeyDownCapture={saveByKey(() => call.isPending || call.mutate())}>
      <CodeBlock label="Address" code={address} />
      {!integration.active && (
        <Text size="sm" c="dimmed">
          The integration is off, so its address answers 404.
        </Text>
      )}
      <Group gap="xs" wrap="nowrap" align="end">
        <Select
          w={110}
          label="Method"
          data={METHODS}
          value={request.method}
          allowDeselect={false}
          onChange={(method) => change({ method: method ?? 'POST' })}
        />
        <TextInput
          flex={1}
          label="Query"
          placeholder="page=2&color=red"
          value={request.query}
          onChange={(event) => change({ query: event.currentTarget.value })}
        />
      </Group>
      <HeadersInput headers={request.headers} onChange={(headers) => change({ headers })} />
      {request.method !== 'GET' && (
        <CodeEditor label="Body" language="json" value={request.body} onChange={(body) => change({ body })} />
      )}
      <Checkbox
        label="Call it as a guest, without your session"
        checked={request.isGuest}
        onChange={(event) => change({ isGuest: event.currentTarget.checked })}
      />
      <Group>
        <Button leftSection={<IconSend size={14} />} onClick={() => call.mutate()} loading={call.isPending}>
          Send
        </Button>
      </Group>
      {call.error && <ProblemMessage error={call.error} />}
      {call.data && (
        <section aria-label="Answer" aria-live="polite">
          <Group gap="xs" mb="xs">
            <StateTag label={String(call.data.status)} tone={call.data.status < 400 ? 'good' : 'bad'} />
            <Text size="xs" c="dimmed">
              {call.data.durationMs} ms
            </Text>
          </Group>
          {call.data.text && <CodeBlock label="Answer" code={indentJson(call.data.text)} />}
          <details>
            <summary>Headers</summary>
            <Details items={call.data.headers} />
          </details>
        </section>
      )}
      <CodeBlock label="curl" code={writeCurl(address, request)} />
    </Stack>
  )
}
