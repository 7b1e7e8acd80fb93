import { Button, Group, JsonInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'

const DEFAULT_NAME = 'default'
const PATHS = { users: '/api/users/{id}/encrypted', workspaces: '/api/workspaces/{id}/encrypted' } as const

type EncryptedDataProps = { owner: keyof typeof PATHS; id: string }
type Target = EncryptedDataProps & { name: string }

const options = ({ id, name }: Target) => ({ params: { path: { id } }, headers: { 'x-encrypted-id': name } })

async function readValue(target: Target): Promise<string> {
  const value: unknown = await fetchData(api.GET(PATHS[target.owner], options(target)))
  return value ? JSON.stringify(value, null, 2) : ''
}

async function encryptValue(target: Target, text: string) {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new Error(`This is not JSON yet: ${(error as Error).message}`)
  }
  return fetchData(api.POST(PATHS[target.owner], { ...options(target), body: value as Record<string, unknown> }))
}

/** Values that are stored encrypted, by their names. They are shown only on request. */
export function EncryptedData({ owner, id }: EncryptedDataProps) {
  const [name, setName] = useState(DEFAULT_NAME)
  const [text, setText] = useState<string>()
  const target = { owner, id, name: name.trim() || DEFAULT_NAME }
  const show = useMutation({ mutationFn: () => readValue(target), onSuccess: setText })
  const store = useMutation({
    mutationFn: () => encryptValue(target, text ?? ''),
    onSuccess: () => {
      setText(undefined)
      showNotice('The data was encrypted and stored.')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    store.mutate()
  }
  const error = store.error ?? show.error
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        <Text size="sm" c="dimmed">
          JSON that is stored encrypted. It appears in no list, export or event.
        </Text>
        <TextInput
          label="Name"
          description="Distinguishes several values."
          value={name}
          // The value that is being fetched belongs to this name.
          disabled={show.isPending || store.isPending}
          onChange={(event) => {
            setName(event.currentTarget.value)
            setText(undefined)
          }}
        />
        {text !== undefined && (
          <JsonInput
            label="Value"
            description={text === '' && !store.isPending ? 'Nothing is stored under this name.' : undefined}
            autosize
            minRows={4}
            maxRows={16}
            value={text}
            onChange={setText}
            autoFocus
          />
        )}
        {error && <ProblemMessage m={0} error={error} />}
        <Group>
          {text === undefined ? (
            <Button variant="default" loading={show.isPending} onClick={() => show.mutate()}>
              Show or change
            </Button>
          ) : (
            <>
              <Button type="submit" loading={store.isPending} disabled={!text.trim()}>
                Store encrypted
              </Button>
              <Button variant="subtle" color="gray" onClick={() => setText(undefined)}>
                Hide
              </Button>
            </>
          )}
        </Group>
      </Stack>
    </form>
  )
}
