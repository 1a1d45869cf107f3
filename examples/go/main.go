// Ask asks a gateway one private question, and the budget service what is left.
//
//	ask -gateway localhost:50054 -ca ca.pem -certificate ana.pem -key ana.key -token token.jwt \
//	    -table cofacts_feedback -by article_id -k 10 -budget localhost:50052 -account app/acme/ana
//
// The gateway knows the caller by the certificate or the token; nothing else says who pays.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	app "example.org/ask/gen/gris/app/v1"
	budget "example.org/ask/gen/gris/budget/v1"
	common "example.org/ask/gen/gris/common/v1"
	dp "example.org/ask/gen/gris/dp/v1"
)

var (
	gateway     = flag.String("gateway", "localhost:50054", "the gateway")
	ledger      = flag.String("budget", "", "budget_service; empty: it is not asked")
	ca          = flag.String("ca", "", "who signs the servers' certificates (PEM)")
	certificate = flag.String("certificate", "", "the certificate to show (PEM)")
	key         = flag.String("key", "", "its private key (PEM)")
	token       = flag.String("token", "", "a file with a token")
	table       = flag.String("table", "cofacts_feedback", "a table of the policy")
	by          = flag.String("by", "article_id", "the columns to group by, with commas between them; empty: one total")
	k           = flag.Int64("k", 10, "how many elements")
	account     = flag.String("account", "", "whose budget is asked for, such as app/acme/ana")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		log.Fatal(explain(err))
	}
}

func run(ctx context.Context) error {
	security, err := protected()
	if err != nil {
		return err
	}
	if err := ask(ctx, security); err != nil || *ledger == "" {
		return err
	}
	return askWhatIsLeft(ctx, security)
}

// protected returns how both ends of a connection prove themselves.
func protected() (grpc.DialOption, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if *ca != "" {
		pem, err := os.ReadFile(*ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("-ca: expected certificates in %s", *ca)
		}
	}
	if *certificate != "" {
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return grpc.WithTransportCredentials(credentials.NewTLS(config)), nil
}

// ask prints the ranked elements of one question, and what it cost.
func ask(ctx context.Context, security grpc.DialOption) error {
	connection, err := grpc.NewClient(*gateway, security)
	if err != nil {
		return err
	}
	defer connection.Close()
	if *token != "" {
		content, err := os.ReadFile(*token)
		if err != nil {
			return err
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(content)))
	}
	question := &dp.Question{Form: &dp.Question_Structured{Structured: &dp.HistogramQuery{
		Table: *table, Dimensions: columns(), Measure: dp.Measure_MEASURE_DISTINCT_MEMBERS, K: k,
	}}}
	stream, err := app.NewPrivateQueryServiceClient(connection).Ask(ctx, &app.AskRequest{Question: question})
	if err != nil {
		return err
	}
	var chunks []*dp.ShownElements
	for {
		response, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("the gateway stopped before the end of the result")
		}
		if err != nil {
			return err
		}
		if end := response.GetEnd(); end != nil {
			for _, chunk := range chunks {
				show(chunk, end.Shown.Parameters)
			}
			return finish(end.Shown)
		}
		chunks = append(chunks, response.GetChunk())
	}
}

// columns returns what -by names. The service says which of them is wrong.
func columns() []string {
	if *by == "" {
		return nil
	}
	return strings.Split(*by, ",")
}

// finish prints what is said of the numbers, and what all of it cost.
func finish(shown *dp.Shown) error {
	for _, each := range shown.Statements {
		fmt.Printf("%s: %s\n", each.Code, each.Text)
	}
	fmt.Printf("cost %d information, %d calls\n", shown.Cost.Information, shown.Cost.Calls)
	return nil
}

func show(chunk *dp.ShownElements, parameters *dp.MechanismParameters) {
	for row, count := range counts(chunk) {
		elements := make([]string, len(chunk.Columns))
		for place, column := range chunk.Columns {
			elements[place] = value(column, row)
		}
		// Where bounds can cut what members have, the count in the table may be larger than what noise leaves possible.
		ends := fmt.Sprintf("%d to %d", chunk.NoiseLower[row], chunk.NoiseUpper[row])
		if parameters.GetAtLeast() != nil {
			ends = fmt.Sprintf("at least %d", chunk.NoiseLower[row])
		}
		fmt.Printf("%s\t%s\t%s\n", strings.Join(elements, ", "), count, ends)
	}
}

// Counts of weighted members, and counts relative to their total, are multiples of 1 / noisy_denominator.
func counts(chunk *dp.ShownElements) []string {
	var found []string
	for _, count := range chunk.NoisyCounts {
		found = append(found, strconv.FormatInt(count, 10))
	}
	for _, numerator := range chunk.NoisyNumerators {
		count := float64(numerator) / float64(chunk.NoisyDenominator)
		found = append(found, strconv.FormatFloat(count, 'f', -1, 64))
	}
	return found
}

func value(column *common.ElementColumn, row int) string {
	switch values := column.Values.(type) {
	case *common.ElementColumn_Strings:
		return values.Strings.Values[row]
	case *common.ElementColumn_Int64S:
		return fmt.Sprint(values.Int64S.Values[row])
	case *common.ElementColumn_Bools:
		return fmt.Sprint(values.Bools.Values[row])
	case *common.ElementColumn_Dates:
		return time.Unix(int64(values.Dates.Days[row])*86400, 0).UTC().Format(time.DateOnly)
	}
	return "?"
}

// askWhatIsLeft prints every level of the account that has a limit.
func askWhatIsLeft(ctx context.Context, security grpc.DialOption) error {
	connection, err := grpc.NewClient(*ledger, security)
	if err != nil {
		return err
	}
	defer connection.Close()
	request := &budget.GetBudgetRequest{Account: &budget.Account{Path: strings.Split(*account, "/")}}
	answer, err := budget.NewBudgetServiceClient(connection).GetBudget(ctx, request)
	if err != nil {
		return err
	}
	for _, level := range answer.Levels {
		left, limit := level.Remaining, level.Limit
		fmt.Printf("%s: %d of %d information, %d of %d calls left\n",
			strings.Join(level.Path, "/"), left.Information, limit.Information, left.Calls, limit.Calls)
	}
	return nil
}

// explain returns an error with its reason for machines, if it has one.
func explain(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return fmt.Sprintf("%s (%s/%s)", status.Convert(err).Message(), info.Domain, info.Reason)
		}
	}
	return err.Error()
}
