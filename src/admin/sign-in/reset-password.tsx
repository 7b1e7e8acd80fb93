import { Anchor, Button, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useEffect, useState } from 'react'
import { api, fetchData } from '../api/client'
import { findFieldError } from '../api/problem'
import { FullPage } from '../ui/full-page'
import { showNotice } from '../ui/notices'
import { AddressForm } from './address-form'
import { SignInProblem } from './sign-in-problem'

/** The token of the mail: in the fragment or, as the standard mails write it, in the query. */
const readToken = () => location.hash.slice(1) || new URLSearchParams(location.search).get('token') || ''

/** Sends the mail that lets somebody replace a forgotten password, and takes the token of that mail. */
export function ResetPassword() {
  const [token] = useState(readToken)
  const [isSent, setIsSent] = useState(false)
  useEffect(() => {
    document.title = 'Forgotten password'
  }, [])
  return (
    <FullPage>
      <Title order={1} mb="xs">
        {token || isSent ? 'Choose a new password' : 'Forgotten password'}
      </Title>
      {token || isSent ? (
        <NewPasswordForm token={token} />
      ) : (
        <AddressForm send={requestMail} onSent={() => setIsSent(true)}>
          <Text size="sm" c="dimmed">
            Enter the e-mail address of your account. You will get a mail with a link to choose a new password.
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

const requestMail = (email: string) => fetchData(api.POST('/api/password/forgot', { body: { email } }))

function NewPasswordForm({ token }: { token: string }) {
  const navigate = useNavigate()
  const [typedToken, setTypedToken] = useState(token)
  const [password, setPassword] = useState('')
  const reset = useMutation({
    mutationFn: () => fetchData(api.POST('/api/password/reset', { body: { token: typedToken.trim(), password } })),
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
              If an account has confirmed this address, a mail is on its way. Open its link, or enter its code here. It
              is valid for one hour.
            </Text>
            <TextInput
              label="Code from the mail"
              autoComplete="off"
              autoFocus
              value={typedToken}
              error={errorOf('token')}
              onChange={(event) => setTypedToken(event.currentTarget.value)}
            />
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
        {reset.error && !errorOf('token') && !errorOf('password') && <SignInProblem error={reset.error} />}
        <Button type="submit" size="sm" loading={reset.isPending} disabled={!typedToken.trim() || !password}>
          Change the password
        </Button>
      </Stack>
    </form>
  )
}
