public import BenchmarkCore

/// Every peer, in the order of the report: ours, what a user would pick instead, what a user would write instead where
/// there is nothing to pick, ours in other forms, and the physical limits.
/// Then the controls `wrong`, `hang`, `stall` and `absent`, which fail on purpose and are shown in no report.
///
/// A peer whose library was missing when this was built is in the list, and says so: see ``Peer/missing``.
public let peerTypes: [any Peer.Type] = [
    OursPool.self, DispatchPool.self, OperationQueuePool.self, TaskGroupPeer.self, NIOPool.self,
    PthreadPoolPeer.self, TBBPool.self, ClosuresPeer.self, UndoManagerPeer.self, SnapshotPeer.self,
    OldValuesPeer.self, MutexPeer.self, FlagPeer.self, ActorPeer.self, OursBarePool.self,
    OursPreferredPool.self, OursRecordedPool.self, SerialPeer.self, FloorPeer.self, WrongPeer.self,
    HangingPeer.self, StallingPeer.self, AbsentPeer.self,
]
