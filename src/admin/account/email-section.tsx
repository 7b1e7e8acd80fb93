import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { sendWithProof } from '../api/proof'
import type { Me } from '../api/schema'
import { MailedCodeInput } from '../sign-in/mailed-code-input'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { StateTag } from '../ui/state-tag'
import { refetchAccount } from './account-queries'

/** The e-mail address of the user, whether it is confirmed, and a form for another one. */
export function EmailSection({ me }: { me: Me }) {
  const { email, emailVerified, pendingEmail } = me
  return (
    <PanelSection title="E-mail address" order={2}>
      <Stack gap="sm" align="flex-start">
        <Group gap="xs">
          <Text size="sm">{email || 'You have none, so you cannot get a mail to choose a new password.'}</Text>
          {email && (
            <StateTag label={emailVerified ? 'confirmed' : 'not confirmed'} tone={emailVerified ? 'good' : 'warning'} />
          )}
        </Group>
        {pendingEmail && <Text size="sm">{pendingEmail} replaces it as soon as you confirm it.</Text>}
        {(pendingEmail || (email && !emailVerified)) && <AddressConfirmation email={pendingEmail ?? email ?? ''} />}
        <NewAddressForm />
      </Stack>
    </PanelSection>
  )
}

/** Takes the code from the mail, and sends the mail again. */
function AddressConfirmation({ email }: { email: string }) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    mutationFn: () => fetchData(api.POST('/api/email/verify', { body: { email, code } })),
    onSuccess: async () => {
      await refetchAccount()
      showNotice('Your e-mail address is confirmed.')
    },
  })
  const sendAgain = useMutation({
    mutationFn: () => fetchData(api.POST('/api/email/verification')),
    onSuccess: () => showNotice('Another mail is on its way.'),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    confirm.mutate()
  }
  const error = confirm.error ?? sendAgain.error
  return (
    <form onSubmit={submit}>
      <Group align="flex-end" gap="xs">
        <MailedCodeInput description="Or open the link in the mail." value={code} onType={setCode} />
        <Button type="submit" variant="default" loading={confirm.isPending} disabled={!code.trim()}>
          Confirm address
        </Button>
        <Button variant="subtle" loading={sendAgain.isPending} onClick={() => sendAgain.mutate()}>
          Send the mail again
        </Button>
      </Group>
      {error && <ProblemMessage m={0} error={error} />}
    </form>
  )
}

function NewAddressForm() {
  const [email, setEmail] = useState('')
  const change = useMutation({
    mutationFn: () => sendWithProof((proof) => fetchData(api.POST('/api/me', { body: { email, ...proof } }))),
    onSuccess: async () => {
      setEmail('')
      await refetchAccount()
      showNotice('A mail to the new address is on its way. Confirm the address with it.')
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  const flaw = findFieldError(change.error, 'email')
  return (
    <form onSubmit={submit} noValidate>
      <Group align="flex-end" gap="xs">
        <TextInput
          label="New address"
          type="email"
          autoComplete="email"
          value={email}
          error={flaw}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <Button type="submit" variant="default" loading={change.isPending} disabled={!email}>
          Change address
        </Button>
      </Group>
      {change.error && !flaw && <ProblemMessage m={0} error={change.error} />}
    </form>
  )
}
