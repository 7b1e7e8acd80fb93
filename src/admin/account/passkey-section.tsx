import { ActionIcon, Button, CloseButton, Group, Text, TextInput } from '@mantine/core'
import { IconPencil } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import type { Passkey } from '../api/schema'
import { createPasskey, findPasskeyObstacle } from '../sign-in/passkey'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { passkeysQuery, refetchAccount } from './account-queries'
import { toDeviceName } from './device-name'

const EMPTY_TEXT = 'A passkey signs you in by the lock of your device: a finger, your face, or its PIN.'

async function registerPasskey() {
  const options = await sendWithProof((proof) => fetchData(api.POST('/api/me/passkeys/options', { body: proof })))
  const credential = await createPasskey(options)
  const body = { name: toDeviceName(navigator.userAgent), credential: credential as never }
  await fetchData(api.POST('/api/me/passkeys', { body }))
  await refetchAccount()
  showNotice('You can sign in with this passkey from now on.')
}

async function removePasskey({ _id: id, name }: Passkey) {
  const text = 'It no longer signs you in. Also delete it on your device.'
  if (!(await confirmAction({ title: `Remove the passkey ${name}?`, text, action: 'Remove passkey' }))) return
  await fetchData(api.DELETE('/api/me/passkeys/{id}', { params: { path: { id } } }))
  await refetchAccount()
}

/** The passkeys of the user. */
export function PasskeySection() {
  const { data: passkeys } = useQuery(passkeysQuery)
  const [renamedId, setRenamedId] = useState<string>()
  const register = useMutation({ mutationFn: registerPasskey })
  const obstacle = findPasskeyObstacle()
  return (
    <PanelSection
      title="Passkeys"
      order={2}
      action={
        !obstacle && (
          <Button variant="default" loading={register.isPending} onClick={() => register.mutate()}>
            Add a passkey
          </Button>
        )
      }
    >
      {register.error && <ProblemMessage m={0} error={register.error} />}
      {obstacle && (
        <Text size="sm" c="dimmed" mb="xs">
          {obstacle}
        </Text>
      )}
      <RowList
        label="Passkeys"
        rows={passkeys}
        rowKey={({ _id }) => _id}
        empty={obstacle ? 'You have none.' : EMPTY_TEXT}
        render={(passkey) => ({
          title:
            renamedId === passkey._id ? (
              <PasskeyNameForm passkey={passkey} onClose={() => setRenamedId(undefined)} />
            ) : (
              passkey.name
            ),
          text: (
            <>
              {passkey.host} ·{' '}
              {passkey.lastUsedAt ? (
                <>
                  used <RelativeTime time={passkey.lastUsedAt} />
                </>
              ) : (
                'not used yet'
              )}
              {passkey.backedUp && ' · backed up'}
            </>
          ),
          actions: renamedId !== passkey._id && (
            <>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Rename ${passkey.name}`}
                onClick={() => setRenamedId(passkey._id)}
              >
                <IconPencil size={16} />
              </ActionIcon>
              <CloseButton
                aria-label={`Remove ${passkey.name}`}
                onClick={() => removePasskey(passkey).catch(showProblem)}
              />
            </>
          ),
        })}
      />
    </PanelSection>
  )
}

function PasskeyNameForm({ passkey: { _id: id, name: before }, onClose }: { passkey: Passkey; onClose: () => void }) {
  const [name, setName] = useState(before)
  const save = useMutation({
    mutationFn: () => fetchData(api.PUT('/api/me/passkeys/{id}', { params: { path: { id } }, body: { name } })),
    onSuccess: async () => {
      await refetchAccount()
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Group gap="xs">
        <TextInput
          size="xs"
          aria-label="Name of the passkey"
          autoFocus
          value={name}
          error={save.error?.message}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" loading={save.isPending} disabled={!name.trim()}>
          Rename
        </Button>
        <Button variant="subtle" color="gray" onClick={onClose}>
          Cancel
        </Button>
      </Group>
    </form>
  )
}
