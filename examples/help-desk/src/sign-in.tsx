import { useState } from 'react'
import { hooks } from './atoll'
import { Field, Notice, onSubmit } from './ui'

export function SignIn() {
  const [isNew, setNew] = useState(false)
  const signIn = hooks.useSignIn()
  const signUp = hooks.useSignUp()
  const { error, isPending } = isNew ? signUp : signIn
  const submit = onSubmit(({ username = '', password = '', ...account }) =>
    isNew ? signUp.mutate({ username, password, ...account }) : signIn.mutate({ username, password }),
  )
  return (
    <main className="narrow">
      <h1>{isNew ? 'Create an account' : 'Sign in to the help desk'}</h1>
      <form onSubmit={submit}>
        {isNew && (
          <Field label="Your name">
            <input name="fullName" autoComplete="name" required />
          </Field>
        )}
        {isNew && (
          <Field label="E-mail address">
            <input name="email" type="email" autoComplete="email" required />
          </Field>
        )}
        <Field label="Username">
          <input name="username" autoComplete="username" required />
        </Field>
        <Field label="Password">
          <input name="password" type="password" autoComplete={isNew ? 'new-password' : 'current-password'} required />
        </Field>
        <Notice error={error} />
        <button type="submit" disabled={isPending}>
          {isNew ? 'Create account' : 'Sign in'}
        </button>
        <button type="button" className="plain" onClick={() => setNew(!isNew)}>
          {isNew ? 'I have an account' : 'I am new here'}
        </button>
      </form>
    </main>
  )
}
