import { Anchor, Button, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, type ReactNode, useState } from 'react'
import { api, fetchData } from '../api/client'
import { useDocumentTitle } from '../branding/tenant-brand'
import { FullPage } from '../ui/full-page'
import { readMailToken } from './mail-token'
import { MailedCodeInput } from './mailed-code-input'
import { SignInProblem } from './sign-in-problem'

type MailActionProps = {
  title: string
  action: string
  done: string
  isReady: boolean
  send: () => Promise<unknown>
  children: ReactNode
}

/** Does what a mail asks for once somebody presses the button: mail scanners only open the page. */
function MailAction({ title, action, done, isReady, send, children }: MailActionProps) {
  const sending = useMutation({ mutationFn: send })
  useDocumentTitle(title)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    sending.mutate()
  }
  return (
    <FullPage>
      <Title order={1} mb="md">
        {title}
      </Title>
      {sending.isSuccess ? (
        <Text role="status">{done}</Text>
      ) : (
        <form onSubmit={submit} noValidate>
          <Stack gap="sm">
            {children}
            {sending.error && <SignInProblem error={sending.error} />}
            <Button type="submit" size="sm" loading={sending.isPending} disabled={!isReady}>
              {action}
            </Button>
          </Stack>
        </form>
      )}
      <Text size="sm" mt="md">
        <Anchor component={Link} to="/home" search={{} as never}>
          {sending.isSuccess ? 'Go on' : 'Go to the sign-in'}
        </Anchor>
      </Text>
    </FullPage>
  )
}

/** Confirms an e-mail address by the link of a mail, or by its code. */
export function VerifyEmail() {
  const [token] = useState(readMailToken)
  const [email, setEmail] = useState('')
  const [code, setCode] = useState('')
  return (
    <MailAction
      title="Confirm your e-mail address"
      action="Confirm address"
      done="Your e-mail address is confirmed."
      isReady={!!token || (!!email.trim() && !!code.trim())}
      send={() => fetchData(api.POST('/api/email/verify', { body: token ? { token } : { email: email.trim(), code } }))}
    >
      {!token && (
        <>
          <TextInput
            label="E-mail address"
            type="email"
            autoComplete="email"
            autoFocus
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <MailedCodeInput value={code} onType={setCode} />
        </>
      )}
    </MailAction>
  )
}

/** Undoes a change of the e-mail address by the link of the mail that reported it. */
export function RevertEmail() {
  const [token] = useState(readMailToken)
  return (
    <MailAction
      title="Undo the change of your e-mail address"
      action="Undo the change"
      done="Your account has its former e-mail address again, and everybody is signed out. Choose a new password."
      isReady={!!token}
      send={() => fetchData(api.POST('/api/email/revert', { body: { token } }))}
    >
      <Text size="sm">This also signs out everybody who uses your account, and ends its API tokens.</Text>
    </MailAction>
  )
}
