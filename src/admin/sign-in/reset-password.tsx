import { Anchor, Button, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { useDocumentTitle } from '../branding/tenant-brand'
import { FullPage } from '../ui/full-page'
import { showNotice } from '../ui/notices'
import { AddressForm } from './address-form'
import { readMailToken } from './mail-token'
import { MailedCodeInput } from './mailed-code-input'
import { SignInProblem } from './sign-in-problem'

/** Sends the mail that lets somebody replace a forgotten password, and takes the link or the code of that mail. */
export function ResetPassword() {
  const [token] = useState(readMailToken)
  const [email, setEmail] = useState<string>()
  useDocumentTitle('Forgotten password')
  return (
    <FullPage>
      <Title order={1} mb="xs">
        {token || email ? 'Choose a new password' : 'Forgotten password'}
      </Title>
      {token || email ? (
        <NewPasswordForm token={token} email={email} />
      ) : (
        <AddressForm send={requestMail} onSent={setEmail}>
          <Text size="sm" c="dimmed">
            Enter the e-mail address of your account. You will get a mail with a code and a link to choose a new
            password.
          </Text>
        </AddressForm>
      )}
      <Text size="sm" mt="md">
        <Anchor component={Link} to="/home" search={{} as never}>
          Back to the sign-in
        </Anchor>
      </Text>
    </FullPage>
  )
}

/** Requests the mail, and returns its address. */
const requestMail = async (email: string) => {
  await fetchData(api.POST('/api/password/forgot', { body: { email } }))
  return email
}

function NewPasswordForm({ token, email }: { token: string; email: string | undefined }) {
  const navigate = useNavigate()
  const [code, setCode] = useState('')
  const [password, setPassword] = useState('')
  const proof = token ? { token } : { email, code }
  const reset = useMutation({
    mutationFn: () => fetchData(api.POST('/api/password/reset', { body: { ...proof, password } })),
    onSuccess: async () => {
      showNotice('Your password was changed. Sign in with it.')
      await navigate({ to: '/home', search: {}, replace: true })
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    reset.mutate()
  }
  const errorOf = (key: string) => findFieldError(reset.error, key)
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        {!token && (
          <>
            <Text size="sm" c="dimmed">
              If an account has confirmed this address, a mail is on its way. Enter its code here within ten minutes, or
              open its link within an hour.
            </Text>
            <MailedCodeInput autoFocus value={code} onType={setCode} />
          </>
        )}
        <PasswordInput
          label="New password"
          description="At least 8 characters. All your sessions and API tokens end."
          autoComplete="new-password"
          autoFocus={!!token}
          value={password}
          error={errorOf('password')}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        {reset.error && !errorOf('password') && <SignInProblem error={reset.error} />}
        <Button type="submit" size="sm" loading={reset.isPending} disabled={!(token || code.trim()) || !password}>
          Change the password
        </Button>
      </Stack>
    </form>
  )
}
