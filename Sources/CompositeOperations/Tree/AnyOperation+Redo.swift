// AnyOperation+Redo.swift - attempts after the first: rerun, awake, resolvers, and the pause before them.

extension AnyOperation {
    /// Reruns it: a new attempt, after the running blocks have returned, and after a pause.
    ///
    /// The block is called again; a composite drops its children, and its block registers new ones. Possible while the
    /// operation executes; for a composite also from its decision handler.
    ///
    /// - Parameter pause: on the clock of its options.
    /// - Returns: false, with no effect, in every other state.
    @discardableResult
    public final func rerun(after pause: Duration = .zero) -> Bool { rerun(after: pause, number: nil) }

    final func rerun(after pause: Duration, number: Int32?) -> Bool {
        change { effects in
            // A leaf is deciding only while code of its resolver is called, and the limit of attempts is strict.
            guard isComposite || machine.phase != .deciding,
                !isExhausted,
                redo(
                    .rerun, after: pause, clock: extras?.options?.clock, number: number,
                    telling: number == nil ? CancelReason() : nil, &effects)
            else { return refuse("rerun(), but it neither executes nor may decide to rerun", &effects) }
            return true
        }
    }

    /// Lets a resolver decide: another attempt, or its fallback.
    ///
    /// - Returns: false, with no effect, unless it is executing, or is a composite with an open decision.
    @discardableResult
    public final func resolve(using resolver: COOperationResolver) -> Bool {
        resolve(using: resolver, number: nil)
    }

    final func resolve(using resolver: COOperationResolver, number: Int32?) -> Bool {
        change { effects in
            guard number == nil || number == machine.attempt,
                machine.phase == .executing || (machine.phase == .deciding && isComposite),
                !isExhausted
            else { return refuse("resolve(using:), but it neither executes nor may do so now", &effects) }
            // A round has marked the children already.
            if isComposite, machine.phase == .executing {
                markDescendants(.cancelled(CancelReason(.parent, origin: id)), &effects)
            }
            let isAsked = resolve(resolver, composition?.causes.first, isOwnWish: number != nil, &effects)
            if !isAsked { decideByCause(&effects) }
            return true
        }
    }

    /// A resolver of a composite has no attempt left. Under the lock.
    final var isExhausted: Bool { withComposition { $0.isExhausted } ?? false }

    /// Begins a new attempt. Under the lock.
    ///
    /// - Parameter reason: why the previous attempt is abandoned, for code that is still working on it; nil: that
    ///   attempt asked for it.
    final func redo(
        _ how: OperationMachine.Redo, after pause: Duration, clock: (any Clock<Duration>)? = nil,
        number: Int32? = nil, telling reason: CancelReason? = nil, _ effects: inout Effects
    ) -> Bool {
        var how = how
        if how == .awake {
            // There is nothing to continue with unless the block registers everything. If it is running, that is known
            // when it returns (`proceed`).
            guard machine.phase == .deciding, withComposition({ !$0.hasThrown }) ?? false else {
                return false
            }
            if withComposition({ !$0.mayBeWhole }) ?? true { how = .rerun }
        }
        guard let freed = machine.redo(how, paused: pause > .zero, number: number) else { return false }
        extras?.attemptEnded(self, reason, &effects)
        withComposition { composition in
            switch how {
            case .rerun: composition.dropChildren(of: self, &effects)
            case .awake: composition.reawakenChildren(of: self, &effects)
            }
        }
        if pause > .zero {
            arm(.pause(machine.attempt), after: pause, clock: clock ?? ContinuousClock(), &effects)
        }
        if isAdmitted { effects.reconcile(self) }
        if extras != nil { observe(&effects) }
        letGo(freed, &effects)
        return true
    }

    /// The pause before an attempt is over.
    final func pauseIsOver(_ number: Int32) {
        change { effects in
            if machine.pauseIsOver(number: number) { proceed(isCounted: false, &effects) }
        }
    }

    /// Begins the next attempt, unless it still has to wait. Under the lock.
    ///
    /// - Parameter isCounted: its parent still counts it, from before it became quiescent.
    /// - Returns: whether it executes, so that its parent counts it.
    @discardableResult
    final func proceed(isCounted: Bool, _ effects: inout Effects) -> Bool {
        let wasToGoOn = machine.isAwakening
        switch machine.proceed(gateIsOpen: gateIsOpen, isWhole: withComposition { $0.isWhole } ?? true) {
        case .waits: return false
        case .queued:
            if wasToGoOn { composition?.dropChildren(of: self, &effects) }
            becameDue(&effects)
            return false
        case .executing:
            if !isCounted { holdParent() }
            armAttemptTimeout(&effects)
            if extras != nil { observe(&effects) }
            effects.goOn(self)
            return true
        }
    }

    /// Lets a resolver decide. Under the lock; the operation executes, or is a composite that decides. Everything below
    /// a composite is marked.
    ///
    /// - Parameters:
    ///   - cause: nil: a call has asked for it.
    ///   - isOwnWish: the attempt itself has asked for it, or has failed.
    /// - Returns: false: nothing is redone, and there is no user code to ask; the caller ends the operation, by its
    ///   cause.
    final func resolve(
        _ resolver: COOperationResolver, _ cause: Cause?, isOwnWish: Bool, _ effects: inout Effects
    ) -> Bool {
        if !isComposite {
            let extras = ensureExtras()
            if let former = extras.pendingCause { effects.add(.giveUp([former], nil)) }
            extras.pendingCause = cause
            extras.isOwnWish = isOwnWish
        }
        if machine.ask() { composition?.holds = 0 }
        if Int(machine.attempt) >= resolver.maxAttempts { return exhaust(resolver, &effects) }
        guard resolver.asksUser else {
            return redo(by: resolver, after: resolver.backoff.pause(after: Int(machine.attempt)), &effects)
        }
        observe(&effects)
        let number = machine.attempt
        let cause = cause ?? Cause(index: nil, child: nil, outcome: .cancelled(CancelReason()))
        composition?.holds += 1  // in addition to the handler's, which returns first
        post(&effects, .ofOperation { operation in operation.ask(resolver, cause, number) })
        return true
    }

    /// - Returns: as ``resolve(_:_:_:)``.
    private final func redo(
        by resolver: COOperationResolver, after pause: Duration, _ effects: inout Effects
    ) -> Bool {
        if isComposite, resolver.redo == .awake,
            redo(.awake, after: pause, clock: resolver.clock, &effects)
        {
            return true
        }
        var reason = extras?.isOwnWish == false ? CancelReason() : nil
        if case .cancelled(let why)? = extras?.pendingCause?.outcome { reason = why }  // its timeout expired
        return redo(.rerun, after: pause, clock: resolver.clock, telling: reason, &effects)
    }

    /// Calls the closures that the user gave to the resolver: as a notice, under no lock.
    private final func ask(_ resolver: COOperationResolver, _ cause: Cause, _ number: Int32) {
        let isWanted = resolver.retryIf?(cause) ?? true
        let pause = isWanted ? resolver.backoff.pause(after: Int(number)) : .zero
        change { effects in
            guard machine.phase == .deciding, machine.attempt == number else { return }
            // A handler may have used another resolver meanwhile, which had no attempt left: the limit is strict.
            if isExhausted { return giveUpHold(&effects) }
            composition?.holds -= 1
            let isGoingOn =
                isWanted ? redo(by: resolver, after: pause, &effects) : exhaust(resolver, &effects)
            if !isGoingOn { decideByCause(&effects) }
        }
    }

    /// No attempt is left, or none is wanted. Under the lock; the operation is deciding.
    ///
    /// - Returns: as ``resolve(_:_:_:)``.
    private final func exhaust(_ resolver: COOperationResolver, _ effects: inout Effects) -> Bool {
        composition?.isExhausted = true
        let extras = ensureExtras()
        // Only once, even if an enclosing composite has the operation redone.
        guard let fallback = resolver.fallback, !extras.hasFallenBack else { return false }
        extras.hasFallenBack = true
        observe(&effects)
        let number = machine.attempt
        composition?.holds += 1
        post(
            &effects,
            .ofOperation { operation in
                fallback(operation)
                operation.decisionIsOver(number)
            })
        return true
    }

    /// A handler has returned, or a `DecisionHold` was released. If no decision was made, that is a decision, too.
    final func decisionIsOver(_ number: Int32) {
        change { effects in
            if machine.phase == .deciding, machine.attempt == number { giveUpHold(&effects) }
        }
    }

    /// A hold that keeps the decision open is released. Under the lock; the last one decides.
    private final func giveUpHold(_ effects: inout Effects) {
        if let composition {
            composition.holds -= 1
            if composition.holds > 0 { return }
        }
        decideByCause(&effects)
    }

    /// Ends it with the outcome that follows from the causes. Under the lock.
    final func decideByCause(_ effects: inout Effects) {
        let bad = badEndByCause
        end(bad.isFailure ? .failed : .cancelled, bad, &effects)
    }

    /// The first failure among the causes; else a cancellation.
    final var badEndByCause: BadEnd {
        let all = composition?.causes ?? [extras?.pendingCause].compactMap(\.self)
        for case .failed(let error) in all.map(\.outcome) { return .failed(error) }
        if isComposite {
            guard case .cancelled(let reason)? = all.first?.outcome else {
                return .cancelled(CancelReason(.exhausted))
            }
            if all.first?.child == nil { return .cancelled(reason) }
            return .cancelled(
                CancelReason(.child, origin: reason.origin ?? all.first?.child, underlying: reason.underlying)
            )
        }
        if case .cancelled(let reason)? = all.first?.outcome, reason.kind == .timedOut {
            return .cancelled(reason)
        }
        return .cancelled(CancelReason(.exhausted))
    }
}
