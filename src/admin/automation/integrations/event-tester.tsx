import { Anchor, Button, Group, Stack, Text } from '@mantine/core'
import { IconSend } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, fetchData } from '../../api/client'
import type { Integration, NewEvent } from '../../api/schema'
import { CodeEditor } from '../../ui/code-editor'
import { ProblemMessage } from '../../ui/problem-message'
import { saveByKey } from '../lambdas/save-shortcut'

/** Returns the name that a trigger asks for; undefined for a wildcard. */
const toName = (name?: string) => (name && name !== '*' ? name : undefined)

/** A form that records an event for which an integration waits. */
export function EventTester({ trigger }: { trigger: Extract<Integration['trigger'], { kind: 'event' }> }) {
  const [text, setText] = useState('{\n}')
  const [flaw, setFlaw] = useState<string>()
  const record = useMutation({
    mutationFn: (metadata: NewEvent['metadata']) => {
      const { source, eventKind, eventName } = trigger
      const names = { source: toName(source), kind: toName(eventKind), eventName: toName(eventName) ?? 'test' }
      return fetchData(api.POST('/api/events', { body: { ...names, metadata } }))
    },
  })
  const start = () => {
    if (record.isPending) return
    try {
      record.mutate(text.trim() ? JSON.parse(text) : {})
    } catch (error) {
      setFlaw(`This is not JSON yet: ${(error as Error).message}`)
    }
  }
  const change = (typed: string) => {
    setText(typed)
    setFlaw(undefined)
  }
  return (
    <Stack gap="sm" onKeyDownCapture={saveByKey(start)}>
      <CodeEditor
        label="Metadata"
        description="The content of the event. The server chooses the names that the integration does not ask for."
        language="json"
        value={text}
        onChange={change}
        error={flaw}
      />
      <Group>
        <Button leftSection={<IconSend size={14} />} onClick={start} loading={record.isPending}>
          Record event
        </Button>
        <Text size="xs" c="dimmed">
          Everything that listens to it receives it.
        </Text>
      </Group>
      {record.error && <ProblemMessage error={record.error} />}
      {record.data && (
        <Text size="sm" role="status">
          The event was recorded:{' '}
          <Anchor component={Link} to={`/automation/events/${record.data._id}`} size="sm" underline="always">
            {record.data.eventName}
          </Anchor>
          .
        </Text>
      )}
    </Stack>
  )
}
