import { Anchor, Button, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { AddressForm } from './address-form'
import { MailedCodeInput } from './mailed-code-input'
import { RemovedPasswordForm } from './removed-password-form'
import { findChallenge } from './second-factor-form'
import { SignInProblem } from './sign-in-problem'

type EmailSignInFormProps = { onDone: () => void; onChallenge: (challenge: string) => void; onCancel: () => void }

/** A sign-in by the code of a mail: it asks for the address, then for the code. */
export function EmailSignInForm({ onDone, onChallenge, onCancel }: EmailSignInFormProps) {
  const [request, setRequest] = useState<string>()
  return (
    <Stack gap="sm">
      {request ? (
        <CodeForm request={request} onDone={onDone} onChallenge={onChallenge} />
      ) : (
        <AddressForm send={requestMail} onSent={({ request }) => setRequest(request)} />
      )}
      <Text size="sm">
        {request && (
          <>
            <Anchor component="button" type="button" onClick={() => setRequest(undefined)}>
              Request another mail
            </Anchor>
            {' · '}
          </>
        )}
        <Anchor component="button" type="button" onClick={onCancel}>
          Sign in another way
        </Anchor>
      </Text>
    </Stack>
  )
}

const requestMail = (email: string) => fetchData(api.POST('/api/signin/email', { body: { email } }))

type CodeFormProps = { request: string; onDone: () => void; onChallenge: (challenge: string) => void }

function CodeForm({ request, onDone, onChallenge }: CodeFormProps) {
  const [code, setCode] = useState('')
  const [isPasswordRemoved, setIsPasswordRemoved] = useState(false)
  const signIn = useMutation({
    mutationFn: () => fetchData(api.POST('/api/signin/email/code', { body: { request, code } })),
    onSuccess: ({ payload }) => (payload.passwordRemoved ? setIsPasswordRemoved(true) : onDone()),
    onError: (error) => {
      const challenge = findChallenge(error)
      if (challenge) onChallenge(challenge)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    signIn.mutate()
  }
  if (isPasswordRemoved) return <RemovedPasswordForm onDone={onDone} />
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text size="sm" c="dimmed">
          If this address can sign in here, a mail is on its way. Its code is valid for 15 minutes.
        </Text>
        <MailedCodeInput autoFocus value={code} onType={setCode} />
        {signIn.error && !findChallenge(signIn.error) && <SignInProblem error={signIn.error} />}
        <Button type="submit" size="sm" loading={signIn.isPending} disabled={!code.trim()}>
          Sign in
        </Button>
      </Stack>
    </form>
  )
}
