import { Button, Group, Modal, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useObservable } from '../api/observable'
import { pendingProof } from '../api/proof'
import type { Proof } from '../api/schema'
import { SignInForm } from '../sign-in/sign-in-form'
import { ProblemMessage } from '../ui/problem-message'

/** Asks who the user is before something that their credentials depend on. */
export function ProofDialog({ username }: { username: string }) {
  const pending = useObservable(pendingProof)
  if (!pending) return null
  const { kind, submit, cancel } = pending
  return (
    <Modal opened title="Confirm that it is you" onClose={cancel}>
      {kind === 'signin' ? (
        <>
          <Text size="sm" mb="sm">
            You signed in more than ten minutes ago. Sign in again to go on.
          </Text>
          <SignInForm username={username} onDone={() => submit({})} />
        </>
      ) : (
        <ProofForm kind={kind} submit={submit} cancel={cancel} username={username} />
      )}
    </Modal>
  )
}

type ProofFormProps = {
  kind: 'code' | 'currentPassword'
  submit: (proof: Proof) => Promise<void>
  cancel: () => void
  username: string
}

function ProofForm({ kind, submit, cancel, username }: ProofFormProps) {
  const [value, setValue] = useState('')
  const sending = useMutation({ mutationFn: () => submit({ [kind]: value }) })
  const send = (event: FormEvent) => {
    event.preventDefault()
    sending.mutate()
  }
  const props = {
    value,
    onChange: (event: { currentTarget: HTMLInputElement }) => setValue(event.currentTarget.value),
    'data-autofocus': true,
    required: true,
    withAsterisk: false,
  }
  return (
    <form onSubmit={send}>
      <Stack gap="sm">
        <Text size="sm">You signed in a while ago, and this changes who can use your account.</Text>
        <input type="text" autoComplete="username" value={username} readOnly hidden />
        {kind === 'code' ? (
          <TextInput
            label="Second-factor code"
            description="Six digits from your app, or a recovery code."
            autoComplete="one-time-code"
            {...props}
          />
        ) : (
          <PasswordInput label="Current password" autoComplete="current-password" {...props} />
        )}
        {sending.error && <ProblemMessage m={0} error={sending.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={cancel}>
            Cancel
          </Button>
          <Button type="submit" loading={sending.isPending} disabled={!value}>
            Confirm
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
